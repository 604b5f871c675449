"""The examples of the pages run."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["python-sweeps.md"])
def test_examples_run_one_after_another(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert blocks
    variables: dict[str, Any] = {}
    for index, block in enumerate(blocks):
        exec(compile(block, f"{page}, example {index + 1}", "exec"), variables)
