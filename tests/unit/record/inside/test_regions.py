"""Times of regions and steps, with a clock that stands still unless it is told to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.core import core
from bragg.duration_buckets import bucket_of
from bragg.grouping.regions import REGIONS as NAMES
from bragg.record import region_names
from bragg.record.inside import regions
from bragg.record.inside.regions import Regions, since
from bragg.record.region_names import chosen


class Clock:
    now_ns = 1000

    def __call__(self) -> int:
        return self.now_ns

    def passes(self, ns: int) -> Callable[..., None]:
        def work(*_: Any, **__: Any) -> None:
            self.now_ns += ns

        return work


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(regions, "perf_counter_ns", clock)
    return clock


def totals(measured: Regions) -> dict[str, tuple[int, int, int]]:
    reading = measured.reading()
    return {name: (row["count"], row["total_ns"], row["in_steps_ns"]) for name, row in reading.items()}


def test_a_step_lasts_from_one_end_of_the_optimizer_to_the_next(clock: Clock) -> None:
    measured = Regions()
    optimizer = type("Optimizer", (), {})()
    for micro_steps in (1, 3):
        for _ in range(micro_steps):
            measured.run("forward", clock.passes(10), (), {})
        clock.passes(5)()
        measured.run("optimizer", clock.passes(2), (), {})
        measured.end_step(optimizer)
    measured.run("forward", clock.passes(100), (), {})
    assert totals(measured) == {"step": (2, 17 + 37, 54), "forward": (5, 140, 40), "optimizer": (2, 4, 4)}


def test_of_several_optimizers_the_first_one_ends_the_steps(clock: Clock) -> None:
    measured = Regions()
    discriminator, generator = (type("Optimizer", (), {})() for _ in range(2))
    for _ in range(3):
        for optimizer in (discriminator, generator):
            measured.run("optimizer", clock.passes(10), (), {})
            measured.end_step(optimizer)
    assert totals(measured)["step"][:2] == (3, 10 + 20 + 20)


def test_a_decoding_step_lasts_from_one_turn_to_the_next(clock: Clock) -> None:
    measured = Regions()
    for lasts_ns in (1000, 10, 30):
        clock.passes(lasts_ns)()
        measured.end_decoding_step()
    assert totals(measured) == {"decoding step": (2, 40, 0)}
    measured.begin_decoding()
    clock.passes(500)()
    measured.end_decoding_step()
    assert totals(measured) == {"decoding step": (2, 40, 0)}


def test_time_belongs_to_the_innermost_region(clock: Clock) -> None:
    measured = Regions()

    def closure() -> None:
        clock.passes(1)()
        measured.run("forward", clock.passes(10), (), {})
        measured.run("backward", clock.passes(20), (), {})

    measured.run("optimizer", closure, (), {})
    assert totals(measured) == {"optimizer": (1, 1, 0), "forward": (1, 10, 0), "backward": (1, 20, 0)}


def test_a_region_in_itself_is_one_call(clock: Clock) -> None:
    measured = Regions()
    measured.run("backward", lambda: measured.run("backward", clock.passes(7), (), {}), (), {})
    assert totals(measured) == {"backward": (1, 7, 0)}


def test_what_raises_takes_time_but_is_no_call(clock: Clock) -> None:
    measured = Regions()
    depth = core.context_depth()

    def fail() -> None:
        clock.passes(4)()
        raise StopIteration

    with pytest.raises(StopIteration):
        measured.run("data", fail, (), {})
    assert totals(measured) == {"data": (0, 4, 0)}
    assert measured.thread.open == []
    assert core.context_depth() == depth


def test_a_recording_knows_what_came_since_it_began(clock: Clock) -> None:
    measured = Regions()
    measured.run("forward", clock.passes(10), (), {})
    measured.run("data", clock.passes(10), (), {})
    before = measured.reading()
    measured.run("forward", clock.passes(10), (), {})
    measured.run("forward", clock.passes(500), (), {})
    came = since(before, measured.reading())
    assert set(came) == {"forward"}
    assert came["forward"] == {
        "count": 2,
        "total_ns": 510,
        "in_steps_ns": 0,
        "buckets": {"10": 1, str(bucket_of(500)): 1},
    }


def test_names_are_those_that_profiles_are_read_with() -> None:
    assert region_names.ALL[1:] == NAMES


def test_regions_are_chosen_by_name() -> None:
    assert chosen("all") == ("step", "data", "forward", "backward", "optimizer")
    assert chosen("step,data") == ("step", "data")
    assert chosen("") == ()
    with pytest.raises(ValueError, match="backwards"):
        chosen("step,backwards")
