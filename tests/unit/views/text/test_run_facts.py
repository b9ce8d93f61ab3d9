from __future__ import annotations

import pytest

from bragg import formats
from bragg.views.terminal.header import header_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN, Style
from tests.support.recordings import RECORDINGS, SAMPLE

META = {
    "command": ["/usr/bin/python3", "train.py", "--name", "two words"],
    "backend": "cuda",
    "host": "gpubox",
    "started_ns": 1_000_000_000,
    "stopped_ns": 3_000_000_000,
    "python": "3.11.7",
    "versions": {"torch": "2.13.0"},
    "devices": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}],
    "cuda": {"state": "attached", "cupti_version": 130001, "driver_version": 13000, "dropped_records": 3},
    "statistics": {"dropped_events": 4},
    "overhead": {"work_ns": 1_010_000_000, "scopes_ns": 10_000_000, "scopes_calls": 100_000},
    "gpu_busy_ns": {"0": 500_000_000},
    "gpu_first_ns": 1_500_000_000,
    "gpu_last_ns": 2_500_000_000,
}


def test_header_says_what_ran_where_and_at_what_cost() -> None:
    assert header_lines(RunFacts(META), "train.bragg", PLAIN) == [
        "train.bragg: python3 train.py --name 'two words'",
        "2.00 s · gpubox, 2 x NVIDIA H200 · backend cuda · "
        "incomplete: 7 records dropped, sums are too low, estimated overhead 1.0 %",
        "python 3.11.7, torch 2.13.0, CUDA driver 13.0, CUPTI 13.0",
        "warning: 7 records dropped, so sums are too low",
    ]


def test_header_fits_the_width() -> None:
    assert max(map(len, header_lines(RunFacts(META), "train.bragg", Style(width=40))[:3])) <= 40


def test_gpu_is_busy_for_a_share_of_the_time_between_its_first_and_last_work() -> None:
    assert RunFacts(META).gpu_busy == {"0": 0.5}


def test_nothing_is_known_of_an_empty_meta() -> None:
    facts = RunFacts({})
    assert (facts.command, facts.run.duration_ns, facts.overhead, facts.gpu_busy) == ("", None, None, {})
    assert facts.cost == ""
    assert list(facts.cautions()) == []


def test_the_duration_of_a_run_that_continues_is_that_so_far() -> None:
    meta = {"started_ns": 10, "end_ns": 10 + 17_200_000_000}
    assert RunFacts(meta).duration_text() == "17.2 s"
    assert RunFacts({**meta, "capture": {"complete": False, "running": True}}).duration_text() == "17.2 s so far"


@pytest.mark.parametrize(
    ("meta", "warning"),
    [
        (
            {"cuda": {"state": "failed", "reason": "no CUPTI"}},
            "GPU work was not recorded (no CUPTI), so sums are too low",
        ),
        ({"statistics": {"bad_timestamps": 1}}, "1 record without usable timestamps, so sums are too low"),
        ({"statistics": {"refused_nodes": 9}}, "9 call paths beyond the limit of the tree"),
        ({"cuda": {"unread_bytes": 2048}}, "2,048 bytes of device records of an unknown kind, so sums are too low"),
        (
            {"capture": {"complete": False, "write_error": "No space left"}},
            "the capture could not be written to its end (No space left), so sums are too low",
        ),
        (
            {"capture": {"complete": False}},
            "what came after the last flush is missing (the program was killed, or was still running), "
            "so sums are too low",
        ),
        ({"capture": {"damaged_chunks": 2, "bytes_lost": 64}}, "2 damaged chunks of the capture, so sums are too low"),
        (
            {"statistics": {"cut_native_paths": 2}},
            "2 launch paths without some of the native functions",
        ),
        (
            {"statistics": {"interleaved_scopes": 3}},
            "3 scopes left before a scope inside: do coroutines share a context?",
        ),
        ({"region_spans_left_out": 1200}, "1,200 more steps and regions are not in the timeline"),
        ({"lost": {"slices": 5}}, "5 slices of the timeline lost to damage of the file, so sums are too low"),
    ],
)
def test_everything_that_is_missing_is_a_warning(meta: dict[str, object], warning: str) -> None:
    assert list(RunFacts(meta).warnings()) == [warning]


@pytest.mark.parametrize(
    ("scheduled", "said"),
    [
        ([5_000_000_000, 4_000_000_000], "the main thread ran 4.00 s, and waited another 3.00 s for a core"),
        ([5_000_000_000, 1_900_000_000], ""),  # less than a second
        ([9_000_000_000, 2_100_000_000], ""),  # less than a fifth
        ([5_000_000_000], ""),
        ([0, 4_000_000_000], ""),
        ("4", ""),
    ],
)
def test_a_thread_that_had_no_core_is_a_warning(scheduled: object, said: str) -> None:
    facts = RunFacts({"scheduled_before": [1_000_000_000, 1_000_000_000], "scheduled": scheduled})
    assert facts.starved.startswith(said)
    assert facts.starved_share == (pytest.approx(3 / 7) if said else 0)
    assert list(facts.cautions()) == [facts.starved] * bool(said)


def test_kernels_whose_code_is_not_complete_are_named() -> None:
    missing = {f"k{number}/0{number}": "its files could not be read" for number in range(4)}
    assert list(RunFacts({"kernel_code": missing}).warnings()) == [
        "code of 4 kernels is not complete (k0/00, k1/01, k2/02, …): its files could not be read"
    ]


def test_cupti_before_13_has_a_plain_version() -> None:
    assert RunFacts({"cuda": {"cupti_version": 28}}).versions == "CUPTI API 28"


def test_little_work_has_an_overhead_in_time_and_no_share() -> None:
    overhead = {"work_ns": 118_000_000, "operators_ns": 52_000_000}
    assert RunFacts({"overhead": overhead}).overhead_text == "estimated overhead 52.0 ms"
    unknown = {**overhead, "operators_ns": 0, "scopes_ns": 52_000_000, "uncalibrated_operators": 1}
    assert RunFacts({"overhead": unknown}).overhead_text == "overhead at least 52.0 ms"
    starved = {"main_thread_ns": [20_000_000, 90_000_000], "duration_ns": 100_000_000}
    samples = {"work_ns": 40_000_000, "samples_ns": 17_000_000, "operators_ns": 400_000}
    assert RunFacts({**starved, "overhead": samples}).overhead_text == "estimated overhead 17.4 ms"


def test_an_overhead_that_leaves_the_program_little_time_is_a_bound() -> None:
    overhead = {"work_ns": 1_000_000_000, "operators_ns": 760_000_000}
    assert RunFacts({"overhead": overhead}).overhead_text == "estimated overhead above 300 %"
    assert (
        RunFacts({"overhead": {**overhead, "operators_ns": 740_000_000}}).overhead_text == "estimated overhead 284.6 %"
    )


@pytest.mark.parametrize("meta", [{"command": "python"}, {"cuda": 3}, {"devices": [3]}, {"overhead": {"work_ns": "x"}}])
def test_meta_of_another_shape_is_not_an_error(meta: dict[str, object]) -> None:
    assert header_lines(RunFacts(meta), "a.bragg", PLAIN)[0] == "a.bragg: unknown command"


def test_a_gpu_that_another_program_used_in_between_is_a_warning() -> None:
    shared = RunFacts.of(formats.load(RECORDINGS[0].parent / "unseen/h100-residual_norm_slow.bragg"))
    assert shared.sliced == (
        "another program shared the GPU: 1,137 launches took 2.46 ms longer than others of their kernel, "
        "40.7 % of the GPU time of these kernels; medians are free of it (p50 of bragg view --flat)"
    )
    assert next(shared.cautions()) == shared.sliced
    assert RunFacts.of(formats.load(SAMPLE)).sliced == ""
