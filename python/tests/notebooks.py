"""Notebooks of the repository, run without a kernel."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


def read(name: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    return cells


def run(name: str) -> dict[str, Any]:
    """Run the code of a notebook, and return its variables."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    for index, cell in enumerate(read(name)):
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{name}.ipynb, cell {index + 1}", "exec")
            exec(code, variables)
    return variables
