from __future__ import annotations

from typing import Any

from bragg.views.text.sampling_facts import sampling_line, sampling_warnings

DEVICE = {"state": "sampled", "period": 15, "restarts": 0, "enabling_ns": 380_000_000, "dropped": 0}


def meta(**sampling: Any) -> dict[str, Any]:
    return {"sampling": {"mode": "continuous", "devices": {"0": DEVICE}, "samples": 2000, "exact": 1500, **sampling}}


def test_a_profile_without_samples_says_nothing() -> None:
    assert sampling_line({}) == ""
    assert list(sampling_warnings({})) == []


def test_how_many_how_exact_how_often_and_what_it_took() -> None:
    assert sampling_line(meta()) == "2,000 instruction samples (75.0 % exact), one in 2^15 cycles, 380 ms to begin"
    assert list(sampling_warnings(meta())) == []


def test_windows_tell_what_they_cost() -> None:
    line = sampling_line(meta(cycle={"budget": 0.03, "reached": 0.021, "windows": 12}))
    assert line.endswith("; 12 windows cost 2.1 % of the 3.0 % they may")


def test_everything_that_is_missing_is_told() -> None:
    devices = {"0": {**DEVICE, "restarts": 2, "period": 19, "dropped": 5}, "1": {"reason": "a MIG instance cannot"}}
    lines = list(sampling_warnings(meta(devices=devices, other_contexts=1, without_launch=7)))
    assert lines == [
        "the sample buffer of GPU 0 was full 2 times: sampled every 2^19 cycles since",
        "5 instruction samples of GPU 0 dropped by the hardware",
        "instructions of GPU 1 were not sampled: a MIG instance cannot",
        "1 CUDA context not sampled: only one of each GPU can be",
        "7 instruction samples of kernels whose launch was not seen",
    ]


def test_sampling_that_brought_nothing_is_told() -> None:
    assert list(sampling_warnings(meta(samples=0))) == ["instructions were not sampled: no kernel ran long enough"]
    assert list(sampling_warnings(meta(samples=0, reason="too old"))) == ["instructions were not sampled: too old"]
