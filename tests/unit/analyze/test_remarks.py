"""What Triton's compiler says of a kernel when it is compiled again."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from bragg import formats
from bragg.analyze.bundle import remarks
from bragg.analyze.bundle.files import Bundle, bundle_of
from bragg.analyze.bundle.remarks import Remark, remarks_on
from bragg.cli.verbs.source import source
from bragg.errors import BackendUnavailable, NothingRecorded, TritonMissing
from tests.support.recordings import RECORDINGS

KERNELS = RECORDINGS[0].parent / "kernels"
PRODUCT = KERNELS / "h100-old-tensor-cores.bragg"
WHY_OLD = (
    "MMA version 3 acceleration not applied due to unsupported shapes or data types. "
    "Target compute capability (90) supports MMA v3."
)
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@pytest.fixture(scope="module")
def product() -> Bundle:
    return bundle_of(formats.load(PRODUCT), "product")


@needs_triton
def test_each_remark_is_told_once_with_its_notes(product: Bundle) -> None:
    (remark,) = remarks_on(product).found
    assert (remark.file.rpartition("/")[2], remark.line, remark.text) == ("slow_kernels.py", 80, WHY_OLD)


@needs_triton
def test_warnings_are_remarks_too_without_the_source_below_them() -> None:
    (remark,) = remarks_on(bundle_of(formats.load(KERNELS / "h100-bank-conflicts.bragg"), "product_of_rows")).found
    assert remark.line == 93
    assert remark.text.startswith("Forcing a different order [0, 1] on SMEM than the register order")
    assert remark.text.endswith("to remove the need to transpose the tensor in registers.")


@needs_triton
def test_they_stand_below_their_lines_in_the_terminal_and_in_json() -> None:
    arguments = [str(PRODUCT), "product", "--remarks"]
    lines = CliRunner().invoke(source, arguments).output.splitlines()
    at = next(i for i, line in enumerate(lines) if "tl.dot(left, right, total" in line)
    assert lines[at + 1].strip() == f"^ Triton: {WHY_OLD}"
    assert any(line.startswith("compiled again by Triton ") and line.endswith(": 1 remark") for line in lines)
    (told,) = json.loads(CliRunner().invoke(source, [*arguments, "--json"]).stdout)["remarks"]["found"]
    assert (told["line"], told["text"]) == (80, WHY_OLD)


@needs_triton
def test_a_text_that_triton_refuses_and_one_that_takes_too_long_are_errors(product: Bundle) -> None:
    broken = replace(product, files={**product.files, "kernel.ttir": "module { tt.nonsense }"})
    with pytest.raises(BackendUnavailable, match=r"Triton \S+ does not compile product<.*>: .+"):
        remarks_on(broken)
    with pytest.raises(BackendUnavailable, match=r"compiling product<.*> again took longer than 0 s"):
        remarks_on(product, within_s=0.01)


def test_without_ttir_or_triton_it_is_not_tried(product: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NothingRecorded, match="this profile has no TTIR of product<"):
        remarks_on(replace(product, files={"facts.json": "{}"}))
    monkeypatch.setattr(remarks, "find_spec", lambda name: None)
    with pytest.raises(TritonMissing):
        remarks_on(product)


@needs_triton
def test_a_remark_on_no_line_that_is_shown_stands_below_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    told = remarks.Remarks("3.6.0", (Remark("/else/where.py", 7, "slow\x1b[2J"),))
    monkeypatch.setattr("bragg.analyze.bundle.remarks.remarks_on", lambda bundle: told)
    lines = CliRunner().invoke(source, [str(PRODUCT), "product", "--remarks"]).output.splitlines()
    (below,) = (line for line in lines if "where.py" in line)
    assert below.startswith("/else/where.py:7: Triton: slow")
    assert "\x1b" not in below


def test_the_table_of_compiled_kernels_is_public() -> None:
    (row,) = formats.load(PRODUCT).compiled_kernels()
    assert (row.registers, row.num_warps, row.occupancy, row.target) == (128, 2, 0.25, "cuda:90")
