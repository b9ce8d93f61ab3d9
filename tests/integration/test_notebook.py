"""Notebooks that are executed; the page of a profile in one, in a browser without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = [
    pytest.mark.consumer,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

WORK = """
import bragg

def work():
    with bragg.scope("inner loop"):
        return sum(i * i for i in range(300_000))
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("notebook")
    cells = [
        "%load_ext bragg",
        WORK,
        "%%bragg --data trace -o cell.bragg\nanswer = work()",
        "profile = _\nprint(type(profile).__name__, answer, len(profile.slices) > 0)\n"
        "print(*sorted({file for file in profile.tree.frames.file if file.startswith('In ')}))",
        "%%bragg --as-proton\npass",
        "from bragg.notebook import ReportWidget\nwidget = ReportWidget(profile)\nwidget.show('flame', node=1)\n"
        "print(widget.view, widget.node, widget.call_path)\nwidget",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata["folder"] = str(folder)
    return notebook


def streams(cell: Any, name: str) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == name)


def test_recorded_cell_leaves_its_names_its_file_and_its_profile(executed: Any) -> None:
    assert (Path(executed.metadata.folder) / "cell.bragg").exists()
    assert "cell.bragg" in streams(executed.cells[2], "stderr")
    assert streams(executed.cells[3], "stdout").splitlines() == [
        f"Profile {sum(i * i for i in range(300_000))} True",
        "In [2] In [3]",  # of its own magic, and of the function
    ]


def test_option_that_means_nothing_in_a_cell_is_one_line_and_a_hint(executed: Any) -> None:
    told = re.sub(r"\x1b\[\d*m", "", streams(executed.cells[4], "stderr")).splitlines()
    assert told == ["error: --as-proton means nothing in a cell", "hint: Leave it out"]


def test_widget_tells_what_is_chosen_and_is_shown(executed: Any) -> None:
    cell = executed.cells[5]
    view, node, path = streams(cell, "stdout").strip().split(" ", 2)
    assert (view, node, path.startswith("[")) == ("flame", "1", True)
    assert any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in cell.outputs)
