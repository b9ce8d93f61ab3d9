from __future__ import annotations

import pytest

from bragg.analyze.causes.bounds import Bounds, ForTarget, Part
from bragg.analyze.causes.other_threads import OtherThreads
from bragg.views.text.below_findings import no_cause
from bragg.views.text.bounds_text import bounds_sentence, threads_text


@pytest.mark.parametrize(
    ("names", "who"),
    [
        ((), "other threads"),
        (("in\x1b[2Jfer",), "thread in\\x1b[2Jfer"),
        (("main", "in\x1b[2Jfer"), "threads main and in\\x1b[2Jfer"),
        (("a\x1b", "b", "c", "d"), "threads a\\x1b, b and 2 more"),
    ],
)
def test_names_of_threads_are_those_that_a_terminal_can_print(names: tuple[str, ...], who: str) -> None:
    text = threads_text(OtherThreads(names, 1.1e9, "/x/ser\x1bve.py:4"))
    assert text == f"{who} ran Python for 1.10 s (most at ser\\x1bve.py:4)"


@pytest.mark.parametrize(("time_ns", "is_told"), [(9e6, False), (11e6, True)])
def test_threads_that_ran_for_less_than_a_hundredth_are_not_told(time_ns: float, is_told: bool) -> None:
    parts = (Part("operators", 1.0, False, ""),)
    threads = OtherThreads(("infer",), time_ns, "")
    bounds = Bounds("operators", None, parts, 0.0, 0, False, host_ns=1e9, threads=threads)
    assert ("Meanwhile" in bounds_sentence(bounds)) is is_told


@pytest.mark.parametrize(
    ("n_kernels", "n_launches", "counts"),
    [
        (1, 1, "1 launch on the CPU, and 1 kernel was compiled for sm_90."),
        (2, 1024, "1,024 launches on the CPU, and 2 kernels were compiled for sm_90."),
    ],
)
def test_kernels_that_no_gpu_executed_are_said_to_be_first(n_kernels: int, n_launches: int, counts: str) -> None:
    bounds = Bounds(
        "operators", None, (), 0.0, 0, False, host_ns=1e6, for_target=ForTarget("sm_90", n_kernels, n_launches)
    )
    assert bounds_sentence(bounds) == f"Nothing ran on a GPU: bragg's interpreter executed {counts}"
    assert no_cause(bounds).startswith("No rule found a cause in the code of its kernels")
