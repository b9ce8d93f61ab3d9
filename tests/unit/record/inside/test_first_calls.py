"""What is kept of the first calls of regions and of the first steps."""

from __future__ import annotations

from bragg.record.inside.first_calls import FirstCalls
from bragg.record.inside.regions import Regions, since


def test_ends_of_the_first_calls_and_of_the_last_are_kept() -> None:
    calls = FirstCalls()
    assert calls.to_json() == {}
    for call in range(100):
        calls.add(1000 + 10 * call, 1007 + 10 * call)
    kept = calls.to_json()["first_calls"]
    assert (kept["began_ns"], kept["last_ns"]) == (1000, 1997)
    assert kept["ends_after_ns"] == [7 + 10 * call for call in range(64)]


def test_a_clock_that_was_set_back_makes_no_end_before_another() -> None:
    calls = FirstCalls()
    for began_ns, ended_ns in ((1000, 1010), (900, 910), (920, 2000)):
        calls.add(began_ns, ended_ns)
    assert calls.to_json()["first_calls"] == {"began_ns": 1000, "ends_after_ns": [10, 10, 1000], "last_ns": 2000}


def test_steps_and_regions_have_their_first_calls() -> None:
    measured, optimizer = Regions(), type("Optimizer", (), {})()
    for _ in range(3):
        measured.run("forward", lambda: None, (), {})
        measured.end_step(optimizer)
    reading = measured.reading()
    step, forward = reading["step"]["first_calls"], reading["forward"]["first_calls"]
    assert len(step["ends_after_ns"]) == len(forward["ends_after_ns"]) == 3
    assert step["began_ns"] <= forward["began_ns"] < forward["last_ns"] <= step["last_ns"]


def test_later_readings_do_not_repeat_the_first_calls() -> None:
    measured = Regions()
    measured.run("forward", lambda: None, (), {})
    before = measured.reading()
    measured.run("forward", lambda: None, (), {})
    later = since(before, measured.reading())["forward"]
    assert later["count"] == 1
    assert "first_calls" not in later
    assert "first_calls" in since({}, measured.reading())["forward"]
