from __future__ import annotations

from dataclasses import replace
from typing import Any

from bragg.analyze.answer import answer
from bragg.analyze.causes.evidence import Evidence
from bragg.model import Metric, MetricKind, Profile
from bragg.views.text.answer_text import fact_rows, lack_lines, sentences
from bragg.views.text.variants import rows_of_frames
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text

META: dict[str, Any] = {
    "started_ns": 0,
    "stopped_ns": 10_000_000,
    "statistics": {"dropped_events": 0},
    "overhead": {"work_ns": 1_020_000_000, "operators_ns": 20_000_000},
}


def said(profile: Profile) -> list[str]:
    return sentences(profile, answer(Evidence(profile), rows_of_frames(profile.tree.frames)))


def lacking(profile: Profile) -> list[str]:
    return lack_lines(profile, answer(Evidence(profile), rows_of_frames(profile.tree.frames)))


def test_three_kernels_are_named_and_the_others_counted() -> None:
    profile = profile_from_text("root\n  a 50us\n  b 25us\n  c 15us\n  d 6us\n  e 4us")
    assert said(profile)[0] == "a took 50.0 % of 100 us of GPU time, b 25.0 % and c 15.0 %; 2 other kernels the rest."


def test_a_function_is_named_by_its_hottest_line() -> None:
    profile = profile_from_text("root\n  a.py:3@work host=1us\n  a.py:7@work host=3us")
    assert said(profile)[0] == "work a.py:7 took 100.0 % of 4.00 us of host time."


def test_a_host_that_waits_for_the_gpu_is_said_to() -> None:
    profile = profile_from_text("root\n  step host=2us\n    k 4us\n    cudaFree #gpu_api host=2us sync=2us")
    assert said(profile)[1] == "The host waited 2.00 us for the GPU, 50.0 % of its time, 100.0 % of that in 'step'."


def test_a_program_that_waits_most_of_its_time_says_so_first() -> None:
    texts = ["root\n  work host=4us\n  sleep host=6us wait=6us", "root\n  work host=6us\n  sleep host=4us wait=4us"]
    first, later = (said(profile_from_text(text)) for text in texts)
    assert first[0] == "The main thread waited 6.00 us, 60.0 % of its time, 100.0 % of that in 'sleep'."
    assert later[0].startswith("work took")
    assert later[1] == "The main thread waited 4.00 us, 40.0 % of its time, 100.0 % of that in 'sleep'."


def test_host_time_answers_where_no_gpu_was_measured() -> None:
    profile = profile_from_text("root\n  a host=3us\n  b host=1us")
    assert said(profile)[0] == "a took 75.0 % of 4.00 us of host time and b 25.0 %."
    assert "No GPU time was recorded" in lacking(profile)[0]


def test_what_a_program_without_a_gpu_did_is_told_without_imports() -> None:
    imports = "  <frozen importlib._bootstrap>:1@_find_and_load\n    m.py:1@<module> host=6us"
    told = said(profile_from_text(f"root\n{imports}\n  a host=3us\n  b host=1us"))
    assert told[:2] == ["a took 75.0 % of 4.00 us of host time and b 25.0 %.", "Imports took 6.00 us more."]


def test_samples_answer_where_there_are_no_times() -> None:
    profile = profile_from_text("root\n  a host=3us\n  b host=1us")
    samples = Metric("samples", "1", MetricKind.INCLUSIVE, profile.own("host_time") // 1000)
    assert said(replace(profile, metrics={"samples": samples}))[0] == "a took 75.0 % of 4 samples and b 25.0 %."


def test_recording_says_what_it_cost() -> None:
    profile = replace(profile_from_text("root\n  a 1us"), meta=META)
    assert said(profile)[-1] == "The recording is complete, estimated overhead 2.0 %."
    lossy = {**META, "statistics": {**META["statistics"], "dropped_events": 7}}
    incomplete = "The recording is incomplete: 7 records dropped, sums are too low, estimated overhead 2.0 %."
    assert said(replace(profile, meta=lossy))[-1] == incomplete
    assert "7 records dropped, so sums are too low" in lacking(replace(profile, meta=lossy))
    running = {**META, "capture": {"complete": False, "running": True}}
    still = "The program is still running: numbers are of its run so far, estimated overhead 2.0 %."
    assert said(replace(profile, meta=running))[-1] == still
    assert not any("last flush" in line for line in lacking(replace(profile, meta=running)))


def test_pauses_have_reasons_where_there_is_a_timeline() -> None:
    trace = trace_from_text("thread 1\n  0-1 run ->1\n  60-70 run ->2\nstream 7\n  10-20 a <-1\n  80-90 b <-2")
    assert said(trace)[1] == (
        "GPU 0 idled 60 ns, 75.0 % of the 80 ns from its first to its last work, in 1 pause: "
        "83.3 % waiting for the host to launch, 16.7 % between a launch and its start."
    )


def test_of_several_gpus_the_one_that_idled_most_is_named() -> None:
    busy = {"0": 900, "1": 500, "2": 700}
    meta = {"gpu_first_ns": 0, "gpu_last_ns": 1000, "gpu_busy_ns": busy}
    sentence = said(replace(profile_from_text("root\n  a 1us"), meta=meta))[1]
    assert sentence.startswith("GPU 1 idled 500 ns, 50.0 % of")
    assert sentence.endswith("; 2 other GPUs idled 10.0 % to 30.0 %.")


def test_without_a_timeline_the_host_is_looked_at() -> None:
    meta = {"gpu_first_ns": 0, "gpu_last_ns": 1000, "gpu_busy_ns": {"0": 100}}
    profile = replace(profile_from_text("root\n  load host=9us\n  a 1us"), meta=meta)
    assert said(profile)[1] == (
        "GPU 0 idled 900 ns, 90.0 % of the 1.00 us from its first to its last work; "
        "meanwhile the host spent 100.0 % of its time in 'load'."
    )
    assert "No timeline was recorded: bragg run --data trace." in lacking(profile)


def test_empty_profile_says_so() -> None:
    assert said(profile_from_text("root")) == ["No time was recorded."]


def test_facts_leave_out_what_is_not_known() -> None:
    assert [name for name, _ in fact_rows(profile_from_text("root\n  a 1us"))] == [
        "Backend",
        "Recorded by",
        "Call paths",
    ]


def test_what_is_left_is_not_called_kernels_where_copies_are_among_it() -> None:
    kernels = "root\n  a 6us\n  b 5us\n  c 4us\n  d 3us\n  e 2us"
    assert said(profile_from_text(kernels))[0].endswith("; 2 other kernels the rest.")
    assert said(profile_from_text(f"{kernels}\n  copy HtoD 1us #memory"))[0].endswith("; 3 others the rest.")
