from __future__ import annotations

from typing import Any

import pytest

from bragg.model.meta.overhead import overhead_of, overhead_within

MS = 1_000_000


def meta(**table: int) -> dict[str, Any]:
    return {"overhead": {"work_ns": 1_000 * MS, **table}}


def slowdown(found: dict[str, Any]) -> float:
    overhead = overhead_of(found)
    assert overhead is not None
    return overhead.slowdown


def test_time_that_was_added_is_compared_with_the_time_without() -> None:
    assert slowdown(meta(scopes_ns=200 * MS)) == pytest.approx(0.25)


def test_a_busy_gpu_hides_what_the_host_did() -> None:
    host_bound = meta(launches_ns=100 * MS, gpu_fed_ns=400 * MS, gpu_records_ns=50 * MS)
    gpu_bound = meta(launches_ns=100 * MS, gpu_fed_ns=1_000 * MS, gpu_records_ns=50 * MS)
    between = meta(launches_ns=100 * MS, gpu_fed_ns=980 * MS, gpu_records_ns=50 * MS)
    assert slowdown(host_bound) == pytest.approx(100 / 900)
    assert slowdown(gpu_bound) == pytest.approx(50 / 950)
    assert slowdown(between) == pytest.approx(60 / 940)  # a fifth of the host's, four fifths of the GPU's


def test_time_in_which_a_program_had_no_core_is_no_work_that_costs_are_a_share_of() -> None:
    assert slowdown(meta(scopes_ns=100 * MS, work_ready_ns=500 * MS)) == pytest.approx(100 / 400)
    assert slowdown(meta(scopes_ns=100 * MS, work_ready_ns=4_000 * MS)) == pytest.approx(19)
    # Beside a GPU it may have been ready while the GPU worked.
    with_gpu = meta(scopes_ns=100 * MS, work_ready_ns=500 * MS, gpu_fed_ns=1, gpu_records_ns=1)
    assert slowdown(with_gpu) == pytest.approx(100 / 900)


def test_a_core_that_was_missed_before_the_work_says_nothing_of_it() -> None:
    """Imports on a busy machine, then 480 ms of operators with a core of their own."""
    starved = {
        "started_ns": 0,
        "stopped_ns": 6_760 * MS,
        "scheduled_before": [0, 0],
        "scheduled": [2_000 * MS, 4_720 * MS],
    }
    found = overhead_of(meta(work_ns=480 * MS, operators_ns=80 * MS, work_ready_ns=10 * MS) | starved)
    assert found is not None
    assert found.slowdown == pytest.approx(80 / 390)


def test_samples_before_the_work_and_after_it_slow_nothing_of_it() -> None:
    run = meta(samples_ns=40 * MS, samples_calls=4_000) | {"started_ns": 0, "stopped_ns": 10_000 * MS}
    found = overhead_of(run)
    assert found is not None
    assert found.slowdown == pytest.approx(4 / 996)
    assert found.parts[0].calls == 400
    part = overhead_within(run | {"overhead": run["overhead"] | {"launches_ns": 1}}, 0.5, 500 * MS, 0)
    assert part is not None
    assert part.added_ns == pytest.approx(2 * MS)


def test_a_part_of_the_run_is_slowed_by_its_share_of_the_launches() -> None:
    run = meta(launches_ns=40 * MS, launches_calls=1000, recorder_ns=10 * MS, gpu_records_ns=1, gpu_fed_ns=900 * MS)
    assert slowdown(run) == pytest.approx(50 / 950)
    part = overhead_within(run, 0.75, 200 * MS, 20 * MS)
    assert part is not None
    assert part.slowdown == pytest.approx(32 / 168)  # 30 of launches, and a fifth of what goes by time
    assert part.parts[0].calls == 750
    busy = overhead_within(run, 0.75, 200 * MS, 200 * MS)
    assert busy is not None
    assert busy.slowdown == pytest.approx(0, abs=1e-6)
    assert overhead_within({}, 0.75, 200 * MS, 20 * MS) is None
    assert overhead_within(run, 0.75, 2 * MS, 0) is None


def test_parts_are_named_with_their_cost_a_call() -> None:
    found = overhead_of(meta(scopes_ns=2_000, scopes_calls=20, operators_ns=9_000, operators_calls=100, recorder_ns=5))
    assert found is not None
    assert found.to_json()["parts"] == {
        "operators": {"cost_ns": 9_000, "calls": 100, "ns_per_call": 90.0},
        "scopes": {"cost_ns": 2_000, "calls": 20, "ns_per_call": 100.0},
        "recorder's own threads": {"cost_ns": 5},
    }


def test_what_has_an_unknown_cost_makes_it_at_least_so_much() -> None:
    plain = overhead_of(meta(operators_ns=MS))
    itt = overhead_of(meta(operators_ns=MS, uncalibrated_operators=100))
    sampled = overhead_of({**meta(operators_ns=MS), "sampling": {"mode": "windows"}})
    assert plain is not None
    assert itt is not None
    assert sampled is not None
    assert (plain.unknown, itt.unknown) == ((), ("PyTorch's part of operators",))
    assert sampled.unknown == ("instruction samples",)
    assert itt.to_json()["is_at_least"]
    assert (itt.left_out, sampled.left_out) == (itt.unknown, sampled.unknown)


@pytest.mark.parametrize(
    ("table", "displaces"),
    [
        ({"operators_ns": 47 * MS}, False),
        ({"operators_ns": 48 * MS}, True),
        ({"launches_ns": 20 * MS, "records_ns": 28 * MS}, True),
        ({"samples_ns": 300 * MS, "recorder_ns": 100 * MS}, False),
        ({"operators_ns": 100 * MS, "gpu_fed_ns": 1_000 * MS, "gpu_records_ns": 30 * MS}, False),  # the GPU hides it
        ({"operators_ns": 100 * MS, "gpu_fed_ns": 950 * MS, "gpu_records_ns": 30 * MS}, True),
    ],
)
def test_costs_in_the_middle_of_the_programs_code_displace_it_from_caches_once_they_matter(
    table: dict[str, int], displaces: bool
) -> None:
    found = overhead_of(meta(**table))
    assert found is not None
    assert found.unknown == (("caches that the program's code finds displaced",) if displaces else ())
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("table", "is_at_least"),
    [
        ({"scopes_ns": 100 * MS}, True),
        ({"scopes_ns": 10 * MS}, False),  # nothing is unknown
        ({"scopes_ns": 100 * MS, "records_ns": MS}, False),
        ({"operators_ns": 100 * MS, "operators_calls": 64}, False),
        ({"operators_ns": 100 * MS, "operators_calls": 64, "uncalibrated_operators": 64}, True),
        ({"operators_ns": 100 * MS, "gpu_fed_ns": 950 * MS, "gpu_records_ns": 30 * MS}, False),
    ],
)
def test_only_what_is_measured_is_at_least_so_much(table: dict[str, int], is_at_least: bool) -> None:
    found = overhead_of(meta(**table))
    assert found is not None
    assert found.is_at_least == is_at_least
    assert found.to_json()["is_at_least"] == is_at_least


def test_it_never_takes_all_of_the_time() -> None:
    assert slowdown(meta(scopes_ns=5_000 * MS)) == pytest.approx(19)


def test_a_program_without_events_was_at_work_while_it_was_recorded() -> None:
    found = {"overhead": {"work_ns": 0, "samples_ns": 10 * MS}, "started_ns": 1, "stopped_ns": 1 + 110 * MS}
    assert slowdown(found) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"overhead": 3},
        {"overhead": {}},
        {"overhead": {"work_ns": -1}},
        {"overhead": {"work_ns": True}},
        {"overhead": {"work_ns": 19 * MS, "scopes_ns": MS}},
    ],
)
def test_nothing_is_said_of_what_is_not_told(found: dict[str, Any]) -> None:
    assert overhead_of(found) is None


@pytest.mark.parametrize("value", [-5, float("inf"), "x", None, [1]])
def test_numbers_that_are_none_count_as_nothing(value: object) -> None:
    assert slowdown({"overhead": {"work_ns": 100 * MS, "scopes_ns": value}}) == 0
