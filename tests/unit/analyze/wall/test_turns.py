"""Turns of a loop without an optimizer: told where text and counts agree, else nothing is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.bounds import bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.turns import Turns, turns_of
from bragg.model import Profile
from bragg.views.text.analysis_text import bounds_sentence
from bragg.views.text.wall_line import wall_json, wall_line
from tests.support.profiles import profile_from_text
from tests.unit.analyze.wall.test_parts import recorded

SERVER = """
def answer(batch):
    hidden = embed(batch)
    for layer in layers:
        hidden = layer(hidden)
    return hidden

def main():
    answer(example)
    for batch in requests:
        scores = answer(batch)
        total = scores.sum()

main()
"""
CALLS = """
root
  s.py:14@<module>
    s.py:9@main
      s.py:3@answer
        aten::embedding #operator hostx1
          gather 1us x1
    s.py:11@main
      s.py:3@answer
        aten::embedding #operator hostx300
          gather 300us x300
      s.py:5@answer
        aten::linear #operator hostx1800
          gemm 90ms x1800
    s.py:12@main
      aten::sum #operator hostx300
        reduce 1ms x600
"""


def ran(calls: str = CALLS, text: str = SERVER) -> Profile:
    return replace(profile_from_text(calls.strip()), sources={"s.py": text})


def turns(calls: str = CALLS, text: str = SERVER) -> Turns:
    found = turns_of(ran(calls, text))
    assert found is not None
    return found


def test_turns_are_counted_by_what_each_calls_once_and_not_by_its_layers() -> None:
    found = turns()
    assert (found.count, found.place, found.header) == (300, "s.py:10", "main: for batch in requests:")
    assert found.launches == 300 * (1 + 6 + 2) / 300
    tree = ran().tree
    inside = [tree.label(node) for node in np.flatnonzero(found.is_inside).tolist()]
    assert inside[:2] == ["s.py:11@main", "s.py:3@answer"]
    assert int(found.is_inside.sum()) == len(tree) - 6  # not the root, the module, and the call before the loop


def test_a_loop_in_what_a_loop_calls_has_no_turns_of_its_own() -> None:
    inner = "for layer in layers:\n        x = layer(x)\n        x = x.sin()"
    text = f"def main():\n    for batch in requests:\n        run(batch)\ndef run(x):\n    {inner}\nmain()\n"
    calls = """
root
  s.py:7@<module>
    s.py:3@main
      s.py:6@run
        aten::linear #operator hostx1800
          gemm 90ms x1800
      s.py:7@run
        aten::sin #operator hostx1800
          sin 9ms x1800
"""
    assert turns_of(ran(calls, text)) is None


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("y = batch.sin()", True),
        ("y = batch.sin().sin()", False),  # 300 calls are 150 turns
        ("y = [each.sin() for each in batch]", False),
        ("y = map(sin, batch)", False),
        ("y = batch.sin() if last else batch", False),
    ],
)
def test_a_line_counts_turns_only_if_it_calls_once(line: str, is_told: bool) -> None:
    calls = "root\n  s.py:2@<module>\n    aten::sin #operator hostx300\n      sin 9ms x300"
    found = turns_of(ran(calls, f"for batch in requests:\n    {line}\n"))
    assert (found is not None) is is_told
    if found:
        assert (found.count, found.place) == (300, "s.py:1")


@pytest.mark.parametrize(
    ("before", "is_told"),
    [("pass", True), ("if done: continue", False), ("if done: break", False), ("if done: log()", True)],
)
def test_what_some_turns_do_not_reach_counts_no_turns(before: str, is_told: bool) -> None:
    calls = "root\n  s.py:3@<module>\n    aten::sin #operator hostx300\n      sin 9ms x300"
    found = turns_of(ran(calls, f"for batch in requests:\n    {before}\n    y = batch.sin()\n"))
    assert (found is not None) is is_told


def test_two_objects_that_are_called_alike_count_twice() -> None:
    calls = """
root
  s.py:2@<module>
    /lib/torch/nn/modules/linear.py:134@Linear.forward
      aten::linear #operator hostx300
        gemm 9ms x300
"""
    one, two = "for x in requests:\n    y = first(x)\n", "for x in requests:\n    y = second(first(x))\n"
    assert turns(calls, one).count == 300
    assert turns_of(ran(calls, two)) is None


@pytest.mark.parametrize(
    ("file", "is_told"),
    [("torch/nn/modules/linear", True), ("torch/nn/modules/container", False), ("numpy/core", False)],
)
def test_code_of_libraries_counts_once_only_if_it_is_known_to(file: str, is_told: bool) -> None:
    below = "aten::linear #operator hostx300\n        gemm 9ms x300"
    calls = f"root\n  s.py:2@<module>\n    /lib/{file}.py:9@forward\n      {below}"
    found = turns_of(ran(calls, "for x in requests:\n    y = model(x)\n"))
    assert (found is not None) is is_told


def test_work_in_other_counts_than_those_of_turns_leaves_it_open() -> None:
    uneven = CALLS.replace("hostx1800", "hostx1711").replace("x1800", "x1711")
    assert turns_of(ran(uneven)) is None
    some = CALLS + "    s.py:11@main\n      aten::isnan #operator hostx7\n        isnan 2us x7\n"
    assert turns(some).count == 300


def test_a_loop_that_is_left_in_its_last_turn_lacks_a_part_of_it() -> None:
    assert turns(CALLS.replace("hostx1800", "hostx1794").replace("x1800", "x1794")).count == 300


def test_few_turns_and_programs_without_text_have_none() -> None:
    assert turns_of(ran(CALLS.replace("x300", "x4").replace("x1800", "x24").replace("x600", "x8"))) is None
    assert turns(CALLS.replace("x300", "x5").replace("x1800", "x30").replace("x600", "x10")).count == 5
    assert turns_of(replace(ran(), sources={})) is None
    assert turns_of(ran(CALLS.replace("s.py", "other.py"))) is None


def test_a_loop_with_less_than_most_of_the_work_is_one_of_several_parts() -> None:
    other = "\n  aten::mm #operator hostx3\n    gemm2 40ms x3"
    assert turns_of(ran(CALLS.rstrip() + other)) is None


def test_turns_that_do_not_launch_alike_are_counted_and_have_no_time() -> None:
    tuned = CALLS.rstrip() + "\n    s.py:11@main\n      s.py:5@answer\n        aten::linear #operator hostx1800\n"
    tuned += "\n".join(f"          tried{n} 1us x9" for n in range(200))
    assert (turns(tuned).count, turns(tuned).launches) == (300, 0)


SERVED = """
root
  <frozen importlib._bootstrap>:1@_find_and_load host=900ms
  s.py:14@<module>
    s.py:11@main host=40ms
      s.py:5@answer
        aten::linear #operator hostx1800 host=500ms
    s.py:12@main
      aten::sum #operator hostx300 host=60ms
"""


def test_without_a_gpu_a_turn_has_a_mean_time_of_the_host() -> None:
    found = turns(SERVED)
    assert (found.count, found.place, found.launches, found.host_ns) == (300, "s.py:10", 0, 2e6)
    assert bounds_sentence(bounds_of(Evidence(ran(SERVED)))).startswith(
        "Operators bound the program, which uses no GPU (300 steps of 2.00 ms): of 600 ms on the host after imports, "
    )
    assert turns().host_ns == 0


def test_without_a_gpu_operators_have_to_agree_and_other_code_has_no_count() -> None:
    assert turns(SERVED.replace("host=40ms", "host=900ms")).count == 300
    assert turns_of(ran(SERVED.replace("hostx1800", "hostx1711"))) is None


def test_the_steady_state_is_told_in_turns() -> None:
    like = recorded(works_from=300, per_bin=9)  # 6,300 launches, 9 a turn, after 300 ms
    calls = CALLS.replace("x300", "x700").replace("x1800", "x4200").replace("x600", "x1400")
    profile = replace(like, tree=ran(calls).tree, metrics=ran(calls).metrics, sources=ran().sources)
    assert wall_line(wall_parts(profile)) == (
        "start 100 ms | warm-up 300 ms | steady 700 ms (700 steps of 1.00 ms, turns of the loop at s.py:10, "
        "GPU busy 40 %) | teardown 100 ms"
    )
    told = wall_json(wall_parts(profile))
    assert told
    assert (told["steady"]["steps"], told["steady"]["step_of"]) == (700, "loop at s.py:10")


def test_a_turn_that_had_begun_before_is_no_part_of_the_steady_state() -> None:
    like = recorded(works_from=300, per_bin=10)  # 7,000 launches are 777.8 turns of 9
    calls = CALLS.replace("x300", "x800").replace("x1800", "x4800").replace("x600", "x1600")
    profile = replace(like, tree=ran(calls).tree, metrics=ran(calls).metrics, sources=ran().sources)
    parts = wall_parts(profile)
    assert parts
    assert parts.steady
    assert (parts.steady.n_steps, parts.steady.n_launches) == (777, 6993)
    assert parts.steady.step_ns == pytest.approx(0.9e6, rel=1e-3)


def test_more_launches_than_those_of_all_turns_are_of_something_else() -> None:
    like = recorded(works_from=300, per_bin=9)
    profile = replace(like, tree=ran().tree, metrics=ran().metrics, sources=ran().sources)  # 700 times 9, not 300
    assert "(6,300 launches, GPU busy 40 %)" in wall_line(wall_parts(profile))
