"""Runs that made more or fewer turns of a loop are compared by turn, and steps only with those of the same kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.comparing.gates import step_verdict
from bragg.analyze.comparing.per_turn import of_a_turn, same_loop
from bragg.analyze.comparing.step_units import are_alike, differ
from bragg.model import Profile
from tests.support.profiles import profile_from_text
from tests.unit.analyze.wall.test_parts import recorded, steps

LOOP = "for batch in requests:\n    scores = model(batch)\n"
HEADER = "<module>: for batch in requests:"


def served(turns: int, each_us: int, *, program: str = LOOP) -> Profile:
    """A program that loads a model and serves `turns` batches with three launches each, in 700 ms."""
    text = f"""
root
  s.py:2@<module>
    aten::mm #operator hostx{turns}
      gemm {turns * each_us}us x{3 * turns}
  load
    copy 20us x5"""
    profile = profile_from_text(text.strip())
    like = recorded(works_from=300, per_bin=3 * turns // 700)
    return replace(like, tree=profile.tree, metrics=profile.metrics, sources={"s.py": program})


def test_a_turn_has_what_the_loop_launched_for_it_and_nothing_else() -> None:
    loop = same_loop([served(700, 400)], [served(2100, 100)])
    assert loop
    assert (loop.place, loop.before, loop.after, loop.of_run[0].header) == ("s.py:1", 700, 2100, HEADER)
    slow = of_a_turn(served(700, 400), loop.of_run[0])
    assert (slow.total("gpu_time"), slow.total("gpu_count")) == (400e3, 3)
    fast = of_a_turn(served(2100, 100), loop.of_run[1])
    assert (fast.total("gpu_time"), fast.total("gpu_count")) == (100e3, 3)


def test_runs_with_as_many_turns_or_other_loops_are_compared_by_their_sums() -> None:
    other = LOOP.replace("requests", "pairs")
    assert same_loop([served(700, 400)], [served(707, 100)]) is None
    assert same_loop([served(700, 400)], [served(2100, 100, program=other)]) is None
    assert same_loop([served(700, 400)], [replace(served(2100, 100), sources={})]) is None


def test_a_turn_is_a_step() -> None:
    verdict = step_verdict([served(700, 400)], [served(2100, 100)])
    assert verdict
    assert (verdict.calls_before, verdict.calls_after) == (700, 2100)
    assert (verdict.before, verdict.after) == (pytest.approx(1e6, rel=1e-3), pytest.approx(1e6 / 3, rel=1e-3))


def test_a_turn_of_a_program_without_a_gpu_is_a_step_too() -> None:
    runs = []
    for host_ms, turns in ((900, 300), (400, 200)):
        text = f"root\n  s.py:2@<module>\n    aten::mm #operator hostx{turns} host={host_ms}ms"
        runs.append(replace(profile_from_text(text), sources={"s.py": LOOP}))
    verdict = step_verdict(runs[:1], runs[1:])
    assert verdict
    assert (verdict.before, verdict.calls_before, verdict.after, verdict.calls_after) == (3e6, 300, 2e6, 200)
    loop = same_loop(runs[:1], runs[1:])
    assert loop
    assert of_a_turn(runs[1], loop.of_run[1]).total("host_time") == 2e6


def test_steps_of_different_kinds_are_not_compared() -> None:
    trains = recorded(**steps(10, 10, 10, 10))
    assert not are_alike([served(700, 400), trains])
    assert differ([served(700, 400), trains])
    assert step_verdict([served(700, 400)], [trains]) is None
    assert not differ([served(700, 400), recorded()])  # which has no steps
    assert are_alike([served(700, 400), served(2100, 100)])


def jitted(turns: int, *, members: int = 1) -> Profile:
    """A program whose loop calls a jitted function, once in each turn or for several members."""
    inner = "    for member in members:\n        update(member)\n" if members > 1 else "    update(members)\n"
    line = 3 if members > 1 else 2
    text = f"""
root
  s.py:{line}@<module>
    jit(update) #operator hostx{turns * members}
      gemm 9ms x{turns * members}"""
    kept = {"began_ns": 1_000_000, "ends_after_ns": [1_000_000, 2_000_000, 3_000_000], "last_ns": 9_000_000}
    step = {"count": turns * members, "total_ns": 9_000_000, "in_steps_ns": 9_000_000, "called_ns": 9_000_000}
    regions = {"step of jit(update)": {**step, "buckets": {}, "first_calls": kept}}
    sources = {"s.py": "for epoch in epochs:\n" + inner}
    return replace(profile_from_text(text.strip()), meta={"regions": regions}, sources=sources)


def test_calls_for_each_member_are_not_steps_like_one_for_all() -> None:
    assert are_alike([jitted(100), jitted(300)])
    assert differ([jitted(100, members=32), jitted(300)])
