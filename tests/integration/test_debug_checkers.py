"""What a finding says, how findings are grouped, and how checkers are chosen; tests/kernels has the kernels."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault
from bragg.debug.report import Report
from bragg.errors import UsageError
from bragg.model import Finding, Severity

pytest.importorskip("triton")

from tests.kernels.planted import PLANTED
from tests.kernels.planted.performance import reads_a_number_of_the_module
from tests.kernels.planted.values import adds_without_mask_at_the_store
from tests.support import triton_kernels as kernels


def findings_of(name: str) -> Report:
    with bragg.debug.check() as report:
        PLANTED[name].launch()
    return report


def test_finding_names_tensor_programs_lane_index_mask_and_fix() -> None:
    (finding,) = (f for f in findings_of("mask_one_too_far") if f.rule == "out-of-bounds")
    assert finding.tensor is not None
    assert (finding.tensor.name, finding.tensor.shape) == ("x", (1000,))
    assert finding.witness is not None
    assert (finding.witness.program, finding.witness.lane, finding.witness.offset) == ((3, 0, 0), 232, 1000)
    assert (finding.programs, finding.lanes, finding.grid) == ({3}, 1, (4, 1, 1))
    assert (finding.address, finding.mask) == ("x + offsets", "offsets <= n")
    assert "offsets <= n lets these lanes through" in finding.hint


def test_programs_of_a_finding_are_those_of_one_grid() -> None:
    kernel, n = kernels.add, 10
    x, y = np.zeros(n, "f4"), np.zeros(n, "f4")
    with bragg.debug.check() as report:
        for programs in (3, 5):
            kernel[(programs,)](x, x, y, 4 * programs, BLOCK=4)
    finding = next(finding for finding in report if finding.rule == "out-of-bounds")
    assert (finding.programs, finding.grid, finding.is_in_other_grids) == ({2}, (3, 1, 1), True)
    assert "programs 2 (1 of 3)" in finding.lines()[3]
    assert finding.lines()[3].endswith("; and in launches with other grids")


def test_finding_of_a_matrix_gives_the_index_along_each_axis() -> None:
    first = next(f for f in findings_of("rows_and_columns_with_one_wrong_stride") if f.rule == "out-of-bounds")
    assert first.witness is not None
    assert first.witness.index == divmod(first.witness.offset or 0, 32)


def test_race_shows_both_sides() -> None:
    (finding,) = (f for f in findings_of("shift_in_place") if f.rule == "data-race")
    assert finding.code == "tl.store(x + offsets, values + 1)  # bug"
    assert finding.other is not None
    assert finding.other["code"].startswith("values = tl.load(x + offsets + 1")
    assert finding.other["line"] == finding.line - 1


def test_finding_of_a_masked_lane_is_at_its_load_and_says_where_it_is_used() -> None:
    (finding,) = findings_of("sums_lanes_that_were_not_loaded")
    assert finding.tensor is not None
    assert (finding.tensor.name, finding.address, finding.mask) == ("x", "x + offsets", "offsets < n")
    assert finding.other is not None
    assert finding.other["code"] == "tl.store(out + tl.program_id(0), total)"
    assert finding.other["line"] == finding.line + 1
    assert any(line.startswith("  used at: ") for line in finding.lines())


def test_two_loads_of_one_line_are_two_findings() -> None:
    x, y, out = np.ones(1000, "f4"), np.ones(1000, "f4"), np.zeros(1024, "f4")
    with bragg.debug.check() as report:
        adds_without_mask_at_the_store[(4,)](x, y, out, 1000, B=256)
    assert {finding.tensor.name for finding in report if finding.tensor} == {"x", "y"}
    assert {(finding.address, finding.mask) for finding in report} == {("x + i", "i < n"), ("y + i", "i < n")}


def test_lanes_are_grouped_into_ranges() -> None:
    first = next(f for f in findings_of("row_that_runs_into_the_next_one") if f.rule == "out-of-bounds")
    assert first.to_json()["positions"] == [(100, 103)]
    assert "lanes 100-103 (28 in all)" in "\n".join(first.lines())
    assert (first.severity, first.witness.index if first.witness else None) == (Severity.WARNING, (1, 0))


def test_programs_are_grouped_into_one_finding() -> None:
    (finding,) = (f for f in findings_of("not_contiguous") if f.rule == "broken-promise")
    assert len(finding.programs) == 4
    assert "(4 of 4)" in "\n".join(finding.lines())


def test_report_is_json_and_findings_are_those_of_profiles() -> None:
    report = findings_of("sum_without_atomic")
    values = json.loads(json.dumps(report.to_json()))
    assert values["launches"] == 1
    assert values["findings"][0]["rule"] == "data-race"
    assert values["findings"][0]["tensor"]["name"] == "total"
    finding = report.findings[0]
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.ERROR
    assert "data race on total" in finding.message


def test_checkers_can_be_chosen() -> None:
    x = np.ones(1000, "f4")
    kernel = PLANTED["no_mask_at_the_end"].launch
    with bragg.debug.check(without=["out-of-bounds"]), pytest.raises(KernelFault, match="out-of-bounds store of x"):
        kernel()
    with bragg.debug.check(only=["data-race"]) as report:
        kernels.add[(4,)](x, x, x, 1000, BLOCK=256)
    assert len(report) == 0
    with pytest.raises(UsageError, match="unknown checker 'bounds'"):
        bragg.debug.check(only=["bounds"])


def test_correct_kernels_are_clean_under_the_checkers_that_are_off() -> None:
    x, out = np.random.default_rng(0).standard_normal((8, 781)).astype("f4"), np.zeros((8, 781), "f4")
    with bragg.debug.check(add=["nan-origin", "uncoalesced", "atomic-order", "leak"]) as report:
        kernels.softmax[(8,)](out, x, 781, 781, BLOCK=1024)
        kernels.add[(25,)](x, x, out, x.size, BLOCK=256)
    assert len(report) == 0, report.lines()


def test_two_views_of_one_storage_race() -> None:
    x = np.ones(1025, "f4")
    with bragg.debug.check() as report:
        kernels.add[(4,)](x[1:], x[1:], x[:-1], 1024, BLOCK=256)
    assert [finding.rule for finding in report] == ["data-race"]


def test_in_place_is_no_race() -> None:
    x = np.ones(1024, "f4")
    with bragg.debug.check() as report:
        kernels.add[(4,)](x, x, x, 1024, BLOCK=256)
    assert len(report) == 0


def test_memory_written_by_the_host_after_empty_is_known() -> None:
    out = np.zeros(1024, "f4")
    with bragg.debug.check() as report:
        x = np.empty(1024, "f4")
        x[:] = 1
        kernels.add[(4,)](x, x, out, 1024, BLOCK=256)
    assert len(report) == 0


def test_without_checks_an_access_outside_is_an_exception_at_its_line() -> None:
    place = r"bounds.py:\d+: out-of-bounds store of x\[1000\]"
    with bragg.debug.interpret(), pytest.raises(KernelFault, match=place):
        PLANTED["no_mask_at_the_end"].launch()


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_kernel_that_triton_does_not_compile_has_no_known_bank_conflicts() -> None:
    with bragg.debug.check(only=["bank-conflict"]) as report:
        reads_a_number_of_the_module[(1,)](np.zeros(16, "f4"))
    (finding,) = report
    assert finding.message.startswith("Triton does not compile this kernel for a Hopper GPU: NameError")
    assert (finding.rule, finding.severity) == ("bank-conflict", Severity.WARNING)
    assert finding.code == "@triton.jit"
