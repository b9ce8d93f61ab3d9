from __future__ import annotations

from dataclasses import replace

from bragg import formats
from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.report import answered
from bragg.model import Profile
from bragg.views.text.variants import rows_of_frames
from bragg.views.web.first_look import big_numbers, wall_of
from tests.support.profiles import profile_from_text
from tests.support.recordings import SAMPLE


def numbers(profile: Profile) -> list[tuple[str, str]]:
    found = answer(Evidence(profile), rows_of_frames(profile.tree.frames))
    return [(each["value"], each["name"]) for each in big_numbers(profile, found, answered(profile))]


def test_the_sample_says_wall_time_step_busy_gpu_time_and_the_best_gain() -> None:
    shown = numbers(formats.load(SAMPLE))
    assert [name for _, name in shown] == ["wall time", "a step", "GPU busy", "GPU time", "can be saved"]
    assert [value for value, _ in shown[:4]] == ["15.2 s", "16.8 ms", "64 %", "64.1 ms"]


def test_parts_of_the_wall_time_add_up_and_the_steady_state_is_in_the_timeline() -> None:
    profile = formats.load(SAMPLE)
    wall = wall_of(profile, answer(Evidence(profile), rows_of_frames(profile.tree.frames)))
    assert wall is not None
    assert sum(part["duration_ns"] for part in wall["parts"]) == wall["wall_ns"]
    begins, ends = wall["steady"]
    steady = next(part["duration_ns"] for part in wall["parts"] if part["name"] == "steady")
    # The timeline counts from the start of the run, as the bar of the wall time does.
    assert begins == sum(part["duration_ns"] for part in wall["parts"][:2])
    assert begins < ends
    assert ends - begins == steady


def test_what_is_not_known_has_no_number() -> None:
    profile = profile_from_text("root\n  matmul 12us")
    assert numbers(profile) == [("12.0 us", "GPU time")]
    assert wall_of(profile, answer(Evidence(profile), rows_of_frames(profile.tree.frames))) is None


def test_without_a_gpu_a_step_is_that_of_the_analysis() -> None:
    kept = {"began_ns": 0, "ends_after_ns": [9_000_000, 10_000_000, 11_000_000, 12_000_000], "last_ns": 12_000_000}
    step = {"count": 4, "total_ns": 12_000_000, "in_steps_ns": 12_000_000, "buckets": {}, "first_calls": kept}
    profile = replace(profile_from_text("root\n  a.py:1@main host=12ms"), meta={"regions": {"step": step}})
    assert ("1.00 ms", "a step") in numbers(profile)
