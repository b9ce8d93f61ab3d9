"""Programs of several GPUs: those that work less than the busiest decide nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.bounds import bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.model import Gain, IdleKind, IdleTable, Profile, SliceTable, TrackKind
from bragg.model.table import BoolArray
from bragg.views.text.bounds_text import bounds_sentence
from tests.support.stepped import stepped

HOST = """
host 0-5 main > aten::mm#operator ->1
host 5-10 main > aten::copy_#operator ->2
host 20-996 main > aten::item#operator > aten::_local_scalar_dense#operator
"""
FIRST = "gpu 15-995 main > aten::mm#operator > gemm#kernel <-1\n"
UNEVEN = f"{HOST}{FIRST}second 25-455 main > aten::copy_#operator > copy DtoD#memory <-2"
EVEN = f"{HOST.replace('996', '516')}gpu 15-515 main > gemm#kernel <-1\nsecond 25-505 main > copy DtoD#memory <-2"
THREE = (
    f"{HOST}host 10-15 third ->3\n{FIRST}second 25-985 main > copy DtoD#memory <-2\nthird 25-325 third > set#memory <-3"
)
STEP_US, N_STEPS = 1000, 20
WALL_NS = STEP_US * N_STEPS * 1000
NEAR = 0.002


def summed(profile: Profile) -> Profile:
    """The same without a timeline: idle time of each GPU in one bin, in proportion to that of the steady state."""
    steady = Evidence(profile).steady
    assert steady is not None
    begins_ns = steady.ends_ns - WALL_NS
    rows = []
    for device in steady.busy:
        idle_ns = _alone(profile, device).idle_ns
        assert idle_ns is not None
        rows += [
            (device, node, int(idle_ns[node] * WALL_NS / steady.duration_ns))
            for node in np.flatnonzero(idle_ns).tolist()
        ]
    device, node, idle_ns = np.array(rows, np.int64).T
    zeros = np.zeros(len(rows), np.int64)
    table = IdleTable(
        process=zeros.astype(np.int32),
        device=device.astype(np.int32),
        kind=np.full(len(rows), IdleKind.LATE, np.int32),
        node=node.astype(np.int32),
        start_ns=zeros + begins_ns,
        bin_ns=zeros + WALL_NS,
        count=zeros + N_STEPS,
        idle_ns=idle_ns,
        longest_ns=zeros,
    )
    busy_ns = {str(device): int(busy * WALL_NS) for device, busy in steady.busy.items()}
    work = {"gpu_first_ns": begins_ns, "gpu_last_ns": steady.ends_ns, "gpu_busy_ns": busy_ns}
    return replace(profile, slices=SliceTable.empty(), idle=table, meta={**profile.meta, **work})


def _alone(profile: Profile, device: int) -> Evidence:
    """Of one GPU."""
    tracks = profile.tracks
    is_other = (tracks.kind == TrackKind.GPU_STREAM) & (tracks.device != device)
    return Evidence(replace(profile, slices=profile.slices.take(~is_other[profile.slices.track])))


def named(profile: Profile, name: str) -> BoolArray:
    return np.array([profile.tree.label(node) == name for node in range(len(profile.tree))])


def share(gain: Gain | None) -> float:
    assert gain is not None
    return gain.share


@pytest.fixture(params=["timeline", "sums"])
def uneven(request: pytest.FixtureRequest) -> Evidence:
    profile = stepped(UNEVEN, STEP_US)
    return Evidence(profile if request.param == "timeline" else summed(profile))


def test_a_gpu_that_works_less_is_not_waited_for(uneven: Evidence) -> None:
    idle_ns = uneven.idle_ns
    assert idle_ns is not None
    assert idle_ns.sum() == pytest.approx(0.01 * uneven.wall_ns, rel=0.1)
    everything = np.ones(len(idle_ns), np.bool_)
    assert share(uneven.host_gain(everything)) == pytest.approx(0.01, abs=NEAR)


def test_work_of_a_gpu_that_works_less_gains_nothing(uneven: Evidence) -> None:
    gain = uneven.gpu_gain(named(uneven.profile, "copy DtoD"))
    assert share(gain) == 0
    assert gain is not None
    assert gain.limit == "the busiest GPU"


def test_work_of_the_busiest_gpu_gains_until_another_one_bounds(uneven: Evidence) -> None:
    products = named(uneven.profile, "gemm")
    assert share(uneven.gpu_gain(products, 0.5)) == pytest.approx(0.49, abs=NEAR)
    gain = uneven.gpu_gain(products)
    assert share(gain) == pytest.approx(0.57, abs=NEAR)
    assert gain is not None
    assert gain.limit == "another GPU"


def test_parts_are_those_of_the_busiest_gpu(uneven: Evidence) -> None:
    bounds = bounds_of(uneven)
    works = {part.name: part.share for part in bounds.parts if part.is_gpu}
    assert works == {"matrix products and convolutions": pytest.approx(0.98, abs=NEAR)}
    assert sum(part.share for part in bounds.parts) == pytest.approx(1)
    assert "GPU 0, the busiest of 2, works 98 % and waits 2.0 %" in bounds_sentence(bounds)


def test_of_two_gpus_that_work_as_much_times_are_means() -> None:
    profile = stepped(EVEN, STEP_US)
    evidence, single = Evidence(profile), [_alone(profile, device) for device in (0, 1)]
    assert np.array_equal(evidence.idle_ns, np.mean([each.idle_ns for each in single], axis=0))
    for name, gain in (("gemm", 0.25), ("copy DtoD", 0.24)):
        assert share(evidence.gpu_gain(named(evidence.profile, name))) == pytest.approx(gain, abs=0.02)


def test_of_three_gpus_the_two_that_work_most_count() -> None:
    evidence = Evidence(stepped(THREE, STEP_US))
    assert evidence.idle_ns is not None
    assert evidence.idle_ns.sum() <= 0.021 * WALL_NS
    for name, gain in (("gemm", 0.49), ("copy DtoD", 0.48), ("set", 0.0)):
        assert share(evidence.gpu_gain(named(evidence.profile, name))) == pytest.approx(gain, abs=0.01)


def test_what_hides_behind_the_host_never_gains_more_than_the_busiest_gpu_waits() -> None:
    slower = EVEN.replace("25-505", "25-475")  # 0.45 and 0.50 of the time
    evidence = Evidence(stepped(slower, STEP_US))
    assert share(evidence.host_gain(np.ones(len(evidence.profile.tree), np.bool_))) <= 0.5


def test_a_copy_of_another_gpu_is_not_exposed(uneven: Evidence) -> None:
    assert alone_ns(uneven, named(uneven.profile, "copy DtoD")).sum() == 0
