from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg import formats
from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.report import answered
from bragg.model import Finding, Gain, Profile, Severity
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


def test_a_few_slow_steps_do_not_make_the_step_that_is_shown() -> None:
    ends_ns = np.cumsum([9_000_000, *[*[4_000_000] * 19, 900_000_000] * 3, *[4_000_000] * 3])
    kept = {"began_ns": 0, "ends_after_ns": ends_ns.tolist(), "last_ns": int(ends_ns[-1])}
    step = {"count": len(ends_ns), "total_ns": kept["last_ns"], "in_steps_ns": kept["last_ns"], "buckets": {}}
    meta = {"regions": {"step": {**step, "first_calls": kept}}}
    profile = replace(profile_from_text("root\n  a.py:1@main host=3s"), meta=meta)
    shown = big_numbers(profile, answer(Evidence(profile), rows_of_frames(profile.tree.frames)), answered(profile))
    (told,) = (each for each in shown if each["name"].endswith("step"))
    assert told == {"value": "4.00 ms", "name": "the median step", "about": "63 steps, on average 46.7 ms"}


def test_the_tile_names_the_finding_that_saves_most_not_the_first_one() -> None:
    profile = formats.load(SAMPLE)
    found, reason = answer(Evidence(profile), rows_of_frames(profile.tree.frames)), answered(profile)
    findings = [Finding("padding", Severity.WARNING, "", gain=Gain(share, 1.0)) for share in (0.35, 0.67)]
    findings.append(Finding("recompilation", Severity.WARNING, "", gain=Gain(0.9, 1.0, is_once=True)))
    reason = replace(reason, analysis=replace(reason.analysis, findings=findings))
    (tile,) = (each for each in big_numbers(profile, found, reason) if each["name"] == "can be saved")
    assert tile["value"] == "67 %"
