"""Kernels are debugged and cells are recorded by the messages that Colab's page and its process exchange."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

manager = pytest.importorskip("jupyter_client.manager")
pytest.importorskip("ipykernel")
pytest.importorskip("triton")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240
KERNEL = """\
import numpy as np
import triton
import triton.language as tl
import bragg.debug

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0)
    STOP
    tl.store(out + offsets, values * 2, mask=offsets < n)

x, out = np.arange(30, dtype="f4"), np.zeros(30, "f4")
"""


@dataclass
class Said:
    """What a cell has sent to the page."""

    text: str = ""
    html: list[str] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)


class Page:
    """Colab's page: it answers what a cell asks of it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, cell: str, *typed: str) -> Said:
        said, answers = Said(), iter(typed)

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            said.text += content.get("text", "")
            said.html += [content["data"]["text/html"]] if "text/html" in content.get("data", {}) else []
            said.errors += [content] if message["msg_type"] == "error" else []
            if message["msg_type"] == "colab_request":
                number = message["metadata"]["colab_msg_id"]
                self._client.input({"type": "colab_reply", "colab_msg_id": number, "data": content["request"][::-1]})

        def answer(_message: dict[str, Any]) -> None:
            self._client.input(next(answers))

        asked = {"timeout": TIMEOUT_S, "allow_stdin": True}
        self._client.execute_interactive(cell, stdin_hook=answer, output_hook=take, **asked)
        assert list(answers) == [], said
        return said


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    process = manager.KernelManager()
    process.kernel_spec.argv = [sys.executable, "-m", "tests.support.colab_kernel", "-f", "{connection_file}"]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    process.start_kernel(cwd=str(tmp_path_factory.mktemp("content")), env=environment)
    client = process.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT_S)
        yield Page(client)
    finally:
        client.stop_channels()
        process.shutdown_kernel(now=True)


def test_the_page_answers_the_prompt_of_a_kernel_and_what_javascript_asks_before_and_after(page: Page) -> None:
    ask = "from google.colab import output\nprint(type(get_ipython()).__module__, output.eval_js('abc'))"
    assert page.run(ask).text == "google.colab._shell cba\n"
    assert page.run(KERNEL.replace("STOP", "import pdb; pdb.set_trace()")) == Said()
    run = "with bragg.debug.interpret():\n    kernel[(4,)](x, out, 30, BLOCK=8)\nprint('result', out[29])"
    told = page.run(run, "p values.mean()", "p values[1, 2:4]", "c")
    assert not told.errors
    assert "13.59375" in told.text
    assert "10., 11." in told.text
    assert told.text.endswith("result 58.0\n")
    assert page.run(ask).text.endswith("cba\n")


def test_findings_are_told_at_the_lines_of_their_cells_and_faults_by_colabs_own_message(page: Page) -> None:
    page.run(KERNEL.replace("STOP", "pass"))
    run = "with bragg.debug.check() as report:\n    kernel[(4,)](x, out, 31, BLOCK=8)\nprint(report.findings[0])"
    told = page.run(run)
    assert "tl.load(x + offsets, mask=offsets < n, other=0.0)" in told.text
    (error,) = page.run("with bragg.debug.check():\n    kernel[(4,)](x, out, missing=1)").errors
    assert (error["ename"], "kernel has no parameter 'missing'" in error["evalue"]) == ("ParameterUnknown", True)


def test_a_recorded_cell_shows_its_profile_in_a_frame_that_needs_no_other_cell_and_no_network(page: Page) -> None:
    page.run("%load_ext bragg")
    (shown,) = page.run("%%bragg --data trace\ntotal = sum(i * i for i in range(300_000))").html
    (frame,) = re.findall(r"<iframe [^>]*>", shown)
    assert 'sandbox="allow-scripts"' in frame
    assert (
        re.sub(r"<iframe [^>]*></iframe>", "", shown) == ""
    )  # No script of the cell's own, which Colab would isolate.
    assert not re.search(r"(src|href)=(&quot;|\")?https?:", frame)
    assert page.run("print(total)").text == f"{sum(i * i for i in range(300_000))}\n"


def test_a_magic_with_options_and_no_cell_runs_an_empty_one(page: Page) -> None:
    page.run("%load_ext bragg")
    helped = page.run("%%bragg --help").text
    assert helped.startswith("Usage: %%bragg [OPTIONS]")
    assert "the cell was not run: it asks for help" in helped
    told = re.sub(r"\x1b\[\d*m", "", page.run("%%bragg --data tree --sample-interval 0").text).splitlines()
    assert told == ["error: nothing was measured", "hint: Did the program run anything to measure?"]
