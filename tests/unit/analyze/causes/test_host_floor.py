"""What the host takes to launch, which no faster GPU saves."""

from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.model import FrameKind, Profile
from tests.support.recordings import without_timeline
from tests.support.stepped import stepped

# Of 100 us the host is in operators for 37, 1 of them of the optimizer; the GPU works for 90 and ends last.
OPERATORS = "\n".join(f"host {at}-{at + 18} aten::mm#operator ->{1 + at}" for at in (0, 20))
BUSY = f"{OPERATORS}\ngpu 5-48 aten::mm#operator > gemm#kernel <-1\ngpu 50-97 aten::mm#operator > gemm#kernel <-21"


def kernels(profile: Profile) -> np.ndarray:
    return profile.tree.kind == FrameKind.KERNEL


def test_a_faster_gpu_does_not_save_what_the_host_takes_to_launch() -> None:
    evidence = Evidence(stepped(BUSY, 100))
    gain = evidence.gpu_gain(kernels(evidence.profile))
    assert gain is not None
    assert gain.share == pytest.approx(0.63, abs=0.001)
    assert gain.limit == "the host"


def test_what_saves_less_than_that_is_not_limited() -> None:
    evidence = Evidence(stepped(BUSY, 100))
    gain = evidence.gpu_gain(kernels(evidence.profile), 0.5)
    assert gain is not None
    assert gain.share == pytest.approx(0.45, abs=0.01)
    assert gain.limit == ""


def test_time_in_launches_that_may_have_waited_for_the_queue_is_not_the_hosts() -> None:
    assert Evidence(stepped(BUSY, 100)).host_floor_ns == pytest.approx(37_000 * 19.5, rel=0.05)
    assert Evidence(stepped(BUSY, 100, n_steps=600)).host_floor_ns == 0  # 1,200 launches and no wait
    read = BUSY + "\nhost 98-99 aten::_local_scalar_dense > cuMemcpyDtoHAsync#gpu_api"
    assert Evidence(stepped(read, 100, n_steps=600)).host_floor_ns > 0


def test_a_call_that_loads_code_counts_as_others_do() -> None:
    long = BUSY.replace("host 20-38", "host 20-95")
    assert Evidence(stepped(long, 100)).host_floor_ns == pytest.approx(39_000 * 19.5, rel=0.05)


@pytest.mark.parametrize(("host_us", "share", "limit"), [(20, 0.45, ""), (80, 0.19, "the host")])
def test_calls_of_jax_do_not_wait_so_a_gpu_that_is_half_busy_decides_what_they_leave(
    host_us: int, share: float, limit: str
) -> None:
    text = f"host 0-{host_us} jit(step)#operator ->1\ngpu 30-75 jit(step)#operator > gemm#kernel <-1"
    evidence = Evidence(without_timeline(stepped(text, 100)))
    gain = evidence.gpu_gain(kernels(evidence.profile))
    assert gain is not None
    assert gain.share == pytest.approx(share, abs=0.03)
    assert gain.limit == limit
    other = Evidence(without_timeline(stepped(text.replace("jit(step)", "aten::mm"), 100)))
    unclear = other.gpu_gain(kernels(other.profile))
    assert unclear is None or unclear.share == 0
