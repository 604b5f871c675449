"""Every notebook runs in a kernel of Jupyter."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

# Other packages close sockets and loops late.
pytestmark = pytest.mark.filterwarnings("default")
FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [one.get("data", {}) for cell in notebook.cells for one in cell.get("outputs", [])]
    assert any("text/plain" in one for one in outputs)
    # altair shows a chart as a page with Vega.
    charts = [one for one in outputs if "vegaEmbed" in one.get("text/html", "")]
    assert charts or path.stem == "tables-with-polars"
