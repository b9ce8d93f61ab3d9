from __future__ import annotations

from bragg.duration_buckets import bucket_of
from bragg.record.inside.call_steps import CallSteps


def test_a_step_lasts_from_the_end_of_a_call_to_the_end_of_the_next() -> None:
    steps = CallSteps()
    for began_ns, ended_ns in ((1000, 1500), (1600, 1610), (1700, 1730)):
        steps.called("jit(step)", began_ns, ended_ns)
    steps.called("jit(init)", 0, 10)
    reading = steps.reading()
    assert reading["step of jit(step)"].pop("first_calls")["ends_after_ns"]
    assert reading == {
        "step of jit(step)": {
            "count": 3,
            "total_ns": 730,
            "in_steps_ns": 730,
            "buckets": {str(bucket_of(500)): 1, str(bucket_of(110)): 1, str(bucket_of(120)): 1},
            "called_ns": 40,
        }
    }


def test_what_lies_between_two_recordings_is_no_step() -> None:
    steps = CallSteps()
    for _ in range(2):
        steps.begin()
        steps.called("jit(step)", 5000, 5010)
        steps.called("jit(step)", 5020, 5030)
        steps.begin()
        steps.called("jit(step)", 9000, 9010)
    assert steps.reading()["step of jit(step)"]["total_ns"] == 2 * (30 + 10)
