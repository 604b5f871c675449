"""The examples of the documents, as a reader would use them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "docs/python.md", "docs/python-sweeps.md"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_of_a_document_run_in_their_order(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / document).read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert examples
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, document, "exec"), names)
