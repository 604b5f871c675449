"""Every notebook runs; those that need more packages run in the longer checks."""

from pathlib import Path

import notebooks
import pytest

LONG = {"sweep-on-dask"}
"""Run by `tools/test-python-long`."""

ALL = sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", [name for name in ALL if name not in LONG])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    variables = notebooks.run(name)
    assert variables["apus"]
    # Statements in the text of the notebooks.
    if name == "tables-with-polars":
        assert variables["jain"] == pytest.approx(variables["result"][0].summary.jain)
    if name == "write-an-algorithm":
        # 1 + 1/1 + 1/2 + 1/2.5 + 1/2.9 + ...: five acknowledgements of one packet each.
        assert variables["grown"] == pytest.approx(3.553, abs=0.001)
        assert sorted(variables["rtt"].values()) == list(variables["rtt"].values())
    if name == "reproduce-and-vary-a-figure":
        assert (tmp_path / "fig15-varied.pdf").stat().st_size > 1000


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_is_stored_without_outputs(name: str) -> None:
    for cell in notebooks.read(name):
        assert not cell.get("outputs"), "remove the outputs: jupyter nbconvert --clear-output"
        assert cell.get("execution_count") is None


def test_the_longer_checks_name_existing_notebooks() -> None:
    assert set(ALL) >= LONG
