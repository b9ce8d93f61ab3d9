from __future__ import annotations

import pytest

from bragg.analyze.causes.bounds import Bounds
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hardware_limits import Limits, hardware_limits
from bragg.model import Profile
from bragg.views.text.bounds_text import bounds_sentence
from tests.support.profiles import profile_from_text
from tests.support.work import H200, working_profile

KERNELS = "root\n  copy 1ms @0\n  matmul 3ms @0\n  gather 6ms @0"
# Of the memory's 4.8 TB/s, copy moves four fifths and gather a tenth; tensor cores work four fifths of matmul.
COUNTED = {
    "dram_bytes": {"copy": 3.85e9, "matmul": 0.6e9, "gather": 2.9e9},
    "dram_counted_time": {"copy": 1e6, "matmul": 3e6, "gather": 6e6},
    "tensor_active_time": {"matmul": 2.4e6},
    "tensor_active_counted_time": {"copy": 1e6, "matmul": 3e6, "gather": 6e6},
}


def limits_of(profile: Profile) -> Limits | None:
    return hardware_limits(Evidence(profile))


def test_counters_tell_which_kernels_are_near_a_limit() -> None:
    found = limits_of(working_profile(KERNELS, [H200], **COUNTED))
    assert found == Limits(pytest.approx(0.1), pytest.approx(0.3), is_measured=True)
    assert found.named == {"memory bandwidth": pytest.approx(0.1), "arithmetic": pytest.approx(0.3)}


def test_counters_win_over_what_the_program_states() -> None:
    stated = {"bytes": {"gather": 28e9}}
    found = limits_of(working_profile(KERNELS, [H200], **stated))
    assert found == Limits(pytest.approx(0.6), 0.0, is_measured=False)
    assert limits_of(working_profile(KERNELS, [H200], **COUNTED, **stated)) == Limits(
        pytest.approx(0.1), pytest.approx(0.3), is_measured=True
    )


def test_without_flops_and_bytes_nothing_is_said() -> None:
    assert limits_of(profile_from_text(KERNELS)) is None


@pytest.mark.parametrize(
    ("limits", "begins"),
    [
        (None, "The GPU bounds the program: "),
        (Limits(0.4, 0.5, is_measured=True), "The GPU bounds the program: "),
        (Limits(0.51, 0.4, is_measured=True), "The GPU's memory bandwidth bounds the program: "),
        (Limits(0.1, 0.9, is_measured=True), "The GPU's arithmetic bounds the program: "),
        (Limits(0.9, 0, True, has_caches=True), "The GPU's bandwidth of memory and caches bounds the program: "),
    ],
)
def test_the_first_sentence_names_what_bounds_more_than_half_of_the_gpus_time(
    limits: Limits | None, begins: str
) -> None:
    bounds = Bounds("the GPU", 0.9, (), 1e6, 0, True, gpu_ns=1e6, limits=limits)
    assert bounds_sentence(bounds) == f"{begins}of 1.00 ms, the steady state, the GPU works 90 % and waits 10 %."
    assert Bounds("the host", 0.1, (), 1e6, 0, True, limits=limits).cause == "the host"
