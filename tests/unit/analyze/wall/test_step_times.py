"""One time of a step, wherever it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_steps import host_steps
from bragg.analyze.comparing.gates import step_verdict
from bragg.analyze.engine import findings
from bragg.analyze.wall.step_times import step_times
from bragg.model import Gain, Profile
from bragg.views.text.training_steps import steps_line
from tests.support.profiles import profile_from_text


def stepped(*durations_ms: int, text: str = "root\n  a.py:1@main host=500ms") -> Profile:
    """A program without a GPU whose first step began at an unknown time."""
    ends = [sum(durations_ms[: n + 1]) * 1_000_000 for n in range(len(durations_ms))]
    total_ns, count = ends[-1] - ends[0], len(ends) - 1
    kept = {"began_ns": ends[0], "ends_after_ns": [end - ends[0] for end in ends[1:]], "last_ns": ends[-1]}
    step: dict[str, Any] = {"count": count, "total_ns": total_ns, "in_steps_ns": total_ns, "buckets": {}}
    return replace(profile_from_text(text), meta={"backend": "cpu", "regions": {"step": {**step, "first_calls": kept}}})


def test_run_diff_and_analysis_say_the_same_time_of_a_step() -> None:
    profile = stepped(900, 300, 20, 20, 20, 20)
    steps = host_steps(Evidence(profile))
    assert steps is not None
    assert (steps.count, steps.duration_ns, steps.made) == (4, 80e6, 6)
    assert steps_line(profile) == "4 steps of 20.0 ms after the first 2, which took 300 ms"
    verdict = step_verdict([profile], [profile])
    assert verdict is not None
    assert (verdict.before, verdict.calls_before) == (20e6, 4)


def test_costs_keep_their_share_of_the_steps_after_the_first_one() -> None:
    steps = host_steps(Evidence(stepped(900, 300, 20, 20, 20, 20)))
    assert steps is not None
    assert steps.of_run == 5 / 6 * 80 / 380


def test_of_what_was_compiled_in_all_steps_those_of_the_steady_state_save_their_part() -> None:
    text = "root\n  a.py:1@main host=500ms\n    [compile] jit_f host=300ms hostx6"
    (finding,) = (each for each in findings(Evidence(stepped(900, 300, 20, 20, 20, 20, text=text))) if each.gain)
    assert (finding.rule, finding.gain) == ("recompilation", Gain(250e6 * 5 / 6 * 80 / 380, 80e6))


def test_without_a_steady_state_all_steps_but_the_first_count() -> None:
    assert steps_line(stepped(900, 20, 300)) == "2 steps of 160 ms after the first"


def test_where_few_steps_took_much_longer_the_median_one_is_said_too() -> None:
    compiled = steps_line(stepped(900, *[*[4] * 19, 900] * 3, 4, 4, 4))
    usual = "the median one took 4.00 ms, the longest tenth 92.2 % of the time"
    assert compiled == f"63 steps of 46.7 ms after the first; {usual}"


def test_an_evaluation_between_steps_is_told_also_where_steps_vary() -> None:
    steps = [900, *[*[4, 4, 9, 4, 12, 4, 4, 9, 4, 11, 4, 4] * 2, 900] * 3, 4, 4, 4]
    assert steps_line(stepped(*steps)).endswith("; the median one took 4.00 ms, the longest tenth 88.7 % of the time")
    assert "median" not in steps_line(stepped(900, *[4, 4, 9, 4, 12] * 20))


def test_unlike_calls_of_one_step_have_a_steady_state() -> None:
    assert (
        steps_line(stepped(900, 300, 400, *[1, 1, 14] * 20))
        == "59 steps of 5.41 ms after the first 4, which took 701 ms"
    )


JITTED = """
root
  v.py:6@<module>
    v.py:3@main
      jit(grad) #operator hostx120
        gemm 6ms x120
    v.py:4@main
      jit(grad) #operator hostx120
        gemm 6ms x120
    v.py:5@main
      jit(apply) #operator hostx120
        add 1ms x120
"""
TRAINS = (
    "def main():\n    for x in data:\n        a = grad(x, p)\n        b = grad(x, q)\n        p = apply(a, b)\nmain()\n"
)


def jitted(text: str = JITTED) -> Profile:
    """A program that calls a jitted function twice in each turn of its loop, for 1 and 3 ms."""
    ends = [1_000_000 * (4 * (n // 2) + (1 if n % 2 == 0 else 4)) for n in range(64)]
    kept = {"began_ns": 1_000_000, "ends_after_ns": ends, "last_ns": 481_000_000}
    step = {"count": 240, "total_ns": 480_000_000, "in_steps_ns": 480_000_000, "called_ns": 9_000_000}
    regions = {"step of jit(grad)": {**step, "buckets": {}, "first_calls": kept}}
    return replace(profile_from_text(text.strip()), meta={"regions": regions}, sources={"v.py": TRAINS})


def test_calls_of_a_function_that_each_turn_makes_twice_are_one_step() -> None:
    times = step_times(jitted())
    assert times is not None
    assert (times.name, times.count, times.usual()) == ("loop at v.py:2", 120, (4e6, 120))
    assert steps_line(jitted()) == "120 steps of 4.00 ms, turns of the loop at v.py:2"


def test_calls_that_turns_do_not_make_equally_often_are_steps_themselves() -> None:
    uneven = JITTED.replace("jit(grad) #operator hostx120", "jit(grad) #operator hostx121", 1)
    for text in (uneven, JITTED.replace("grad", "other", 1)):
        times = step_times(jitted(text))
        assert times is not None
        assert (times.name, times.count) == ("jit(grad)", 240)


def test_calls_that_are_a_small_part_of_a_program_are_not_its_steps() -> None:
    assert host_steps(Evidence(stepped(900, *[20] * 20, text="root\n  a.py:1@main host=3900ms"))) is not None
    assert host_steps(Evidence(stepped(900, *[20] * 20, text="root\n  a.py:1@main host=4100ms"))) is None
