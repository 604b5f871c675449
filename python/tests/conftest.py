"""Scenarios that several tests run."""

import signal
from collections.abc import Iterator
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
def interruptible() -> Iterator[None]:
    """Have Ctrl-C raise an error: a shell ignores it in commands of the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
