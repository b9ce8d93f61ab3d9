"""What telemetry says of a run, from META as the recorder writes it."""

from __future__ import annotations

from typing import Any

import pytest

from bragg.model.meta.telemetry import telemetry_of, united
from bragg.views.terminal.header import header_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN
from bragg.views.text.telemetry_facts import telemetry_json, telemetry_lines, telemetry_warnings


def values(mean: float, samples: int = 10) -> dict[str, float]:
    return {"samples": samples, "mean": mean, "least": mean - 10, "most": mean + 10}


def meta_of(*devices: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"telemetry": {"devices": {str(row): device for row, device in enumerate(devices)}, **others}}


H100 = {
    "source": {"uuid": "GPU-0", "power_is": "instant"},
    "power_w": values(412.4),
    "sm_clock_mhz": values(1755),
    "temperature_c": values(61),
    "memory_used_bytes": values(20e9),
    "energy_j": 2104.5,
    "energy_ns": 5_100_000_000,
    "clock_reasons": {"samples": 50, "power": 20, "idle": 5},
}


def test_a_gpu_takes_one_line() -> None:
    line = (
        "power 412 W mean, 2.1 kJ; SM clock 1,755 MHz; at most 71 C; memory at most 20.0 GB; "
        "clocks held by power in 40.0 % of samples"
    )
    assert telemetry_lines(meta_of(H100)) == [line]
    assert line in header_lines(RunFacts(meta_of(H100)), "a.bragg", PLAIN)


def test_many_gpus_take_three_lines() -> None:
    lines = telemetry_lines(meta_of(H100, H100, H100, H100))
    assert [line.partition(": ")[0] for line in lines] == ["GPU 0", "GPU 1", "2 more GPUs"]


def test_the_json_has_every_gpu() -> None:
    first, second = telemetry_json(meta_of(H100, {"source": {"reason": "Not Found (6)"}}))
    assert (first["energy_j"], first["held"], first["idle"]) == (2104.5, {"power": 0.4}, 0.1)
    assert first["values"]["power_w"]["mean"] == 412.4
    assert (second["energy_j"], second["reason"]) == (None, "Not Found (6)")


def test_ranks_that_were_merged_tell_their_own() -> None:
    merged = {"merged": [{"rank": 0, **meta_of(H100)}, {"rank": 1, **meta_of(H100)}]}
    assert [row["rank"] for row in telemetry_json(merged)] == [0, 1]


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"telemetry": 3},
        {"telemetry": {"devices": [1], "host": "x", "sampling": 7}},
        meta_of({"power_w": {"samples": "many", "mean": "much"}, "energy_ns": -1, "clock_reasons": {"samples": -3}}),
        meta_of({"power_w": 3, "clock_reasons": {"samples": 2, "power": 10**30}, "source": {"missing": "all"}}),
    ],
)
def test_nonsense_is_no_line(meta: dict[str, Any]) -> None:
    assert [line for line in telemetry_lines(meta) if "power 4" in line] == []
    assert all(share <= 1 for row in telemetry_json(meta) for share in row["held"].values())


def test_text_of_a_file_is_printable() -> None:
    reason = {"source": {"reason": "\x1b[31mred"}}
    assert list(telemetry_warnings(meta_of(reason))) == ["no telemetry of GPU 0: \x1b[31mred"]
    assert not any("\x1b[31m" in line for line in header_lines(RunFacts(meta_of(reason)), "a.bragg", PLAIN))


def test_what_is_missing_is_said_by_reason() -> None:
    missing = {"power_w": "Not Supported (3)", "energy_j": "Not Supported (3)", "nvlink_sent_bytes_per_s": "none"}
    (warning,) = telemetry_warnings(meta_of({"source": {"missing": missing}}))
    assert warning == "GPU 0 does not tell power, energy: Not Supported (3)"


def test_phases_unite_by_their_samples() -> None:
    one, other = meta_of(H100), meta_of({**H100, "power_w": values(100, samples=30), "energy_j": 100.0})
    both = telemetry_of({"telemetry": united(one["telemetry"], other["telemetry"])})
    assert both is not None
    (gpu,) = both.gpus
    power = gpu.values["power_w"]
    assert (power.samples, power.mean) == (40, pytest.approx((4124 + 3000) / 40))
    assert (power.least, power.most) == (90, pytest.approx(422.4))
    assert (gpu.energy_j, gpu.energy_ns) == (pytest.approx(2204.5), 10_200_000_000)
    assert (gpu.reason_samples, gpu.held, gpu.idle) == (100, {"power": 0.4}, 0.1)


def test_a_gpu_of_one_phase_is_kept() -> None:
    both = telemetry_of({"telemetry": united(meta_of(H100)["telemetry"], meta_of(H100, H100)["telemetry"])})
    assert both is not None
    assert [gpu.reason_samples for gpu in both.gpus] == [100, 50]


def test_telemetry_that_nobody_asked_for_is_shown_where_a_limit_held_the_clocks() -> None:
    free = {**H100, "clock_reasons": {"samples": 50, "power": 4, "idle": 5}}
    assert len(telemetry_lines(meta_of(H100, limit_ppm=1000))) == 1
    assert telemetry_lines(meta_of(free, limit_ppm=1000)) == []
    assert len(telemetry_lines(meta_of(free))) == 1
    assert list(telemetry_warnings(meta_of(limit_ppm=1000, reason="NVML was not found"))) == []


def test_what_telemetry_took_is_that_of_its_process() -> None:
    one = meta_of(limit_ppm=1000, sampling={"taken_ns": 5, "span_ns": 900})["telemetry"]
    other = meta_of(limit_ppm=1000, sampling={"taken_ns": 9, "span_ns": 9_500})["telemetry"]
    told = telemetry_of({"telemetry": united(one, other)})
    assert told is not None
    assert (told.is_asked, told.taken_ns, told.span_ns) == (False, 9, 9_500)
