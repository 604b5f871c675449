"""Scenarios that several tests run."""

from pathlib import Path

import pytest

INCAST = """\
duration = "2ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"""


@pytest.fixture
def incast(tmp_path: Path) -> Path:
    """Return the file of a scenario that runs in milliseconds."""
    file = tmp_path / "incast.toml"
    file.write_text(INCAST)
    return file


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Return the file of a scenario that runs for hours."""
    file = tmp_path / "endless.toml"
    file.write_text(INCAST.replace("2ms", "1000s"))
    return file
