"""Notebooks that are executed; the page of a profile in one, in a browser without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import bragg
from bragg.debug.host.driver import has_gpu
from bragg.model import FrameKind

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


KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

x, out = torch.ones(100), torch.zeros(100)
doubled[(2,)](x, out, 100, BLOCK=64)
print(out.sum().item(), x.is_cuda)
"""


def executed_in(folder: Path, cells: list[str]) -> Any:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, resources=where).execute()
    return notebook


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
    notebook = executed_in(folder, cells)
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


def test_error_in_a_recorded_cell_has_the_number_of_the_cell(tmp_path: Path) -> None:
    cells = ["%load_ext bragg", "%%bragg\nimport time\n1 / 0", "%%bragg\ntime.sleep(0.1), 7", "_.tree.frames.file"]
    first, second = executed_in(tmp_path, cells).cells[1:3]
    trace = next(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(one.traceback)) for one in first.outputs if "traceback" in one)
    assert "In[2], line 3" in trace
    assert [one.execution_count for one in second.outputs if one.output_type == "execute_result"][:1] == [3]


@pytest.mark.skipif(has_gpu(), reason="launches kernels on the GPU")
@pytest.mark.parametrize("order", [["%load_ext bragg", KERNEL], [f"import triton\n%load_ext bragg{KERNEL}"]])
def test_kernels_of_cells_are_executed_where_there_is_no_gpu(tmp_path: Path, order: list[str]) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    launch = "%%bragg\nfor _ in range(3): doubled[(2,)](x, out, 100, BLOCK=64)"
    defining = executed_in(tmp_path, [*order, launch]).cells[-2]
    assert streams(defining, "stdout").split() == ["200.0", str(len(order) == 2)]
    assert "Triton kernels run in bragg's interpreter on the CPU" in streams(defining, "stderr")
    frames = bragg.load(tmp_path / "notebook.bragg").tree.frames
    names = zip(frames.name, frames.kind, strict=True)
    assert {name for name, kind in names if kind == FrameKind.KERNEL} == {"doubled<BLOCK=64 w4 s3 f32 !16:n>"}
