"""The examples, as a user starts them."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
BENCHES = Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ([EXAMPLES / "own_algorithm.py"], "in-Python: "),
        ([EXAMPLES / "pingpong.py"], "may be applied: False"),
        ([BENCHES / "algorithm.py", "--duration", "200us"], "delay-in-python"),
        ([BENCHES / "transport.py", "--count", "20"], "apus with asyncio"),
    ],
    ids=lambda value: Path(value[0]).stem if isinstance(value, list) else "",
)
def test_an_example_runs_and_prints(command: list[Path | str], output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert output in done.stdout
