"""Tools for developers of the package."""
