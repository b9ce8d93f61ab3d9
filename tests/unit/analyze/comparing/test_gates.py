from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.comparing.diff import By, are_alternating, compare_sets
from bragg.analyze.comparing.gates import Gate, Gated, Limit, Verdict, rows_verdict, verdict_of
from bragg.errors import UsageError
from bragg.model import Profile
from bragg.views.text.diff_text import named_frames
from tests.support.profiles import profile_from_text

SECOND_NS = 1_000_000_000
REGIONS = {
    name: {"count": 10, "total_ns": total_ns, "in_steps_ns": total_ns, "buckets": {}}
    for name, total_ns in {"step": 900, "forward": 500, "backward": 300}.items()
}


def recorded(text: str, began_s: int = 0, wall_s: int = 10) -> Profile:
    meta = {"started_ns": began_s * SECOND_NS or 1, "stopped_ns": (began_s + wall_s) * SECOND_NS, "regions": REGIONS}
    return replace(profile_from_text(text), meta=meta)


BEFORE = recorded("root\n  forward\n    matmul<BM=64 w4 s3> 800us x10\n    forward\n      relu 100us\n  copy 50us")
FASTER = recorded("root\n  forward\n    matmul<BM=64 w4 s3> 500us x10\n    gelu 67us\n  copy 50us", wall_s=14)


def judged(gate: Gate, after: Profile = FASTER, percent: float = 0.0) -> Verdict:
    return verdict_of(gate, [BEFORE], [after], "gpu_time", Limit(percent), named_frames, 1)


def test_a_faster_program_passes_although_a_path_is_new() -> None:
    assert judged(Gate(Gated.TOTAL)).n_exceeded == 0
    rows = rows_verdict(compare_sets([BEFORE], [FASTER], By.PATH), Limit(5), 1)
    assert rows.n_exceeded == 1


@pytest.mark.parametrize(
    ("gate", "before", "after"),
    [
        (Gate(Gated.TOTAL), 950_000, 617_000),
        (Gate(Gated.KERNEL, "matmul"), 800_000, 500_000),
        (Gate(Gated.KERNEL, "*e*lu"), 100_000, 67_000),
        (Gate(Gated.PATH, "forward"), 900_000, 567_000),
        (Gate(Gated.WALL), 10 * SECOND_NS, 14 * SECOND_NS),
        (Gate(Gated.REGION, "backward"), 300, 300),
        (Gate(Gated.REGION, "step"), 900, 900),
    ],
)
def test_what_is_judged_is_what_was_named(gate: Gate, before: float, after: float) -> None:
    verdict = judged(gate)
    assert (verdict.before, verdict.after) == (pytest.approx(before, rel=1e-6), pytest.approx(after, rel=1e-6))
    assert bool(verdict.n_exceeded) == (gate.what is Gated.WALL)


def test_growth_within_noise_or_limit_passes() -> None:
    slower = recorded("root\n  forward\n    matmul 900us x10\n    relu 200us\n  copy 50us")
    assert judged(Gate(Gated.TOTAL), slower).n_exceeded == 1
    assert judged(Gate(Gated.TOTAL), slower, percent=22).n_exceeded == 0
    slightly = recorded("root\n  forward\n    matmul 810us x10\n    relu 100us\n  copy 50us")
    assert judged(Gate(Gated.TOTAL), slightly).n_exceeded == 0


def test_names_that_nothing_has_are_an_error() -> None:
    for gate in (Gate(Gated.KERNEL, "forward"), Gate(Gated.PATH, "matmu"), Gate(Gated.REGION, "data loading")):
        with pytest.raises(UsageError):
            judged(gate)


def test_rows_that_grow_by_less_than_a_hundredth_of_the_whole_pass() -> None:
    before = recorded("root\n  a 990us\n  b 5us")
    after = recorded("root\n  a 990us\n  b 14us")
    assert rows_verdict(compare_sets([before], [after], By.PATH), Limit(5), 1).n_exceeded == 0
    assert rows_verdict(compare_sets([before], [after], By.PATH), Limit(5, 0.0), 1).n_exceeded == 1


def test_runs_in_turn_are_recognised_in_any_order_of_files() -> None:
    before = [recorded("root\n  a 1us", began_s) for began_s in (50, 10, 30)]
    after = [recorded("root\n  a 2us", began_s) for began_s in (20, 60, 40)]
    assert are_alternating(before, after)
    assert not are_alternating(before[:2], after)
    assert not are_alternating(before[:1], after[:1])
    assert not are_alternating(before, [recorded("root\n  a 2us", began_s) for began_s in (70, 80, 90)])
    assert compare_sets(before, after, By.PATH).is_paired


def test_sets_are_compared_over_the_paths_of_all_runs() -> None:
    before = [recorded("root\n  a 10us\n  rare 1us"), recorded("root\n  a 12us"), recorded("root\n  a 11us")]
    comparison = compare_sets(before, [recorded("root\n  a 22us\n  new 4us")], By.KERNEL)
    found = {
        comparison.tree.frames.name[comparison.tree.frame[row]]: (comparison.before[row], comparison.after[row])
        for row in comparison.rows.tolist()
    }
    assert found == {"a": (11_000, 22_000), "new": (0, 4_000), "rare": (pytest.approx(1000 / 3), 0)}
    assert np.all(comparison.spread.margin() >= 0)
