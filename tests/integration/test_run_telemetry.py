"""Telemetry, from the fake NVML to META and tracks of the timeline."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import numpy as np
import pytest

from bragg.analyze.derived import evaluate
from bragg.model import Profile, TrackKind
from bragg.model.kernels.counters import kernel_counters
from bragg.model.meta.telemetry import GPU_TRACKS, Telemetry, telemetry_of
from bragg.views.text.run_facts import RunFacts
from tests.support.fake_gpu_runs import START, Record, kernels

WATT = 400  # of the fake's knob
WORK = """
import ctypes, time
from sampling import told, wait_for
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.bragg_fake_nvml_calls.restype = ctypes.c_int64
def work(seconds):  # once at least
    end, now = time.monotonic() + seconds, 0
    while now < end:
        gpu.launch("copy"); gpu.synchronize(); time.sleep(0.004)
        now = time.monotonic()
def work_until(condition):  # of what telemetry tells
    wait_for(lambda told: told and condition(told), "telemetry", meanwhile=lambda: work(0.02))
def work_until_asked(call=b"nvmlDeviceGetTotalEnergyConsumption", times=1):
    until = nvml.bragg_fake_nvml_calls(call) + times
    while nvml.bragg_fake_nvml_calls(call) < until: work(0.02)
def has(*names):  # of the first GPU; what has a rate was read twice
    return lambda told: set(names) <= set(told["devices"].get("0", ()))
"""


@pytest.fixture
def sampled(record: Record) -> Record:
    """`record`, for programs that are sampled 50 times a second."""
    return partial(record, start=START + WORK, telemetry=50, CLOCK="real")


def told_of(profile: Profile) -> Telemetry:
    told = telemetry_of(profile.meta)
    assert told is not None
    return told


def warnings_of(meta: dict[str, Any]) -> str:
    return "\n".join(RunFacts(meta).warnings())


def test_sums_are_in_the_profile_without_a_timeline(sampled: Record) -> None:
    body = 'work_until(has("utilization_percent", "nvlink_sent_bytes_per_s", "pcie_received_bytes_per_s")); work(1)'
    profile = sampled(body).main
    (gpu,) = told_of(profile).gpus  # of the fake's two the one that was used
    assert gpu.ordinal == 0
    assert gpu.has_instant_power
    assert {name: gpu.mean(name) for name in ("power_w", "sm_clock_mhz", "temperature_c", "utilization_percent")} == {
        "power_w": WATT,
        "sm_clock_mhz": 1755,
        "temperature_c": 61,
        "utilization_percent": 97,
    }
    assert gpu.mean("pcie_received_bytes_per_s") == pytest.approx(2e9, rel=0.05)
    assert gpu.mean("nvlink_sent_bytes_per_s") == pytest.approx(10 * 1024 * 1e6, rel=0.05)
    missed = told_of(profile).missed_samples  # on a machine that is busy; the driver keeps those of power
    wanted = 50 * gpu.energy_ns / 1e9
    assert gpu.values["power_w"].samples <= wanted + 2
    assert gpu.values["power_w"].samples + missed >= 0.9 * wanted
    assert gpu.energy_j is not None
    assert gpu.energy_j == pytest.approx(WATT * gpu.energy_ns / 1e9, rel=0.02)
    assert 0.9e9 < gpu.energy_ns < profile.meta["stopped_ns"] - profile.meta["started_ns"]
    host = told_of(profile).host
    assert 0 < host["cpu_percent"].mean < 400
    assert host["resident_bytes"].most > 10e6
    assert not len(profile.counters)
    assert ("telemetry" in warnings_of(profile.meta)) == (missed > 0)


def test_long_runs_have_telemetry_that_nobody_asked_for(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAGG_TELEMETRY_AFTER_S", "0")
    run = record("work_until(has()); work(0.2)", START + WORK, CLOCK="real")
    told = told_of(run.main)
    (gpu,) = told.gpus
    assert not told.is_asked
    assert gpu.mean("power_w") == WATT
    assert gpu.energy_j is None  # a reading of it costs 3 ms
    assert told.taken_ns > 0
    assert told.span_ns > 0
    assert "telemetry" not in warnings_of(run.main.meta)
    assert "W mean" not in run.talk
    assert telemetry_of(record("work(0.2)", START + WORK, "--force", telemetry=0).main.meta) is None


def test_short_runs_load_no_nvml_and_have_no_thread_for_it(record: Record) -> None:
    body = """
    import os
    from pathlib import Path
    gpu.launch("copy"); gpu.synchronize()
    def threads():  # that of the fake CUPTI begins with the first flush
        time.sleep(0.02)
        return len(os.listdir("/proc/self/task"))
    print("nvidia-ml" in Path("/proc/self/maps").read_text(), max(threads() for _ in range(30)))
    """
    start = START + "import time\n"
    by_default, without = (record(body, start, **options).output for options in ({}, {"telemetry": 0}))
    assert by_default.split()[0] == "False"
    assert by_default == without


def test_samples_are_tracks_of_the_timeline(sampled: Record) -> None:
    body = """
    work_until(has("utilization_percent", "memory_used_bytes", "nvlink_sent_bytes_per_s", "pcie_received_bytes_per_s"))
    work_until(lambda told: "minor_faults_per_s" in told["host"])
    work(0.4)
    """
    profile = sampled(body, data="trace").main
    tracks = profile.tracks
    rows = np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist()
    labels = {tracks.label(row) for row in rows if tracks.device[row] == 0}
    assert labels == GPU_TRACKS
    host = {tracks.label(row) for row in rows if tracks.device[row] == -1}
    assert {"CPU of the process (%)", "resident memory (B)", "minor page faults (1/s)"} <= host
    (power,) = (row for row in rows if tracks.label(row) == "power (W)")
    points = profile.counters.take(profile.counters.track == power)
    assert set(points.value.tolist()) == {WATT}
    assert np.median(np.diff(points.time_ns)) == pytest.approx(20e6, rel=0.2)
    assert evaluate(profile, "power").values[0] == pytest.approx(WATT)
    assert evaluate(profile, "throttled").values[0] == 0
    assert kernel_counters(profile) == []  # 10 samples a second say nothing of one kernel


def test_reasons_for_lower_clocks_are_counted(sampled: Record) -> None:
    body = """
    def reasons(told): return told["devices"].get("0", {}).get("clock_reasons", {})
    def samples(): return reasons(told("telemetry"))["samples"]
    work_until(lambda told: reasons(told).get("samples", 0) >= 20)
    before = samples()
    nvml.bragg_fake_nvml_set(b"nvml_reasons", ctypes.c_int64(0x4))
    print(before, samples())
    work_until(lambda told: reasons(told).get("power", 0) >= 20)
    """
    run = sampled(body, data="trace")
    profile = run.main
    (gpu,) = told_of(profile).gpus
    reasons = profile.meta["telemetry"]["devices"]["0"]["clock_reasons"]
    before, after = map(int, run.output.split())
    assert before <= reasons["samples"] - reasons["power"] <= after + 1  # one may be on its way
    assert gpu.held == {"power": pytest.approx(reasons["power"] / reasons["samples"])}
    label = "clocks held by power"
    (row,) = (each for each in range(len(profile.tracks)) if profile.tracks.label(each) == label)
    assert set(profile.counters.take(profile.counters.track == row).value.tolist()) <= {0.0, 1.0}


def test_an_old_driver_tells_the_average_of_power(sampled: Record) -> None:
    omitted = "nvmlDeviceGetSamples,nvmlDeviceGetFieldValues,nvmlDeviceGetCurrentClocksEventReasons"
    body = 'work_until(has("power_w", "clock_reasons"))'
    profile = sampled(body, OMIT=omitted, NVML_REASONS=0x20).main
    (gpu,) = told_of(profile).gpus
    assert not gpu.has_instant_power
    assert gpu.mean("power_w") == WATT
    assert gpu.held == {"thermal": 1.0}
    assert "pcie_received_bytes_per_s" in gpu.missing


def test_what_a_gpu_does_not_tell_is_said_once(sampled: Record) -> None:
    lacks = "samples,instant_power,power,energy,pcie,nvlink"
    run = sampled('work_until(has("sm_clock_mhz")); work(0.1)', NVML_LACKS=lacks)
    (gpu,) = told_of(run.main).gpus
    assert gpu.mean("power_w") is None
    assert gpu.energy_j is None
    assert gpu.mean("sm_clock_mhz") == 1755
    assert "GPU 0 does not tell power, energy: Not Supported (3)" in warnings_of(run.main.meta).replace(
        "energy, power", "power, energy"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"FAIL": "nvmlInit_v2=9"}, "no telemetry of GPUs: nvmlInit_v2 failed: Driver Not Loaded (9)"),
        ({"OMIT": "nvmlDeviceGetHandleByUUID"}, "lacks nvmlInit_v2 or nvmlDeviceGetHandleByUUID"),
        ({"NVML_MIG": "1"}, "no telemetry of GPU 0: it is an instance of MIG"),
    ],
)
def test_without_nvml_the_program_is_recorded(sampled: Record, settings: dict[str, str], words: str) -> None:
    has_tried = 'lambda told: told["host"] and ("reason" in told["sampling"] or told["devices"])'
    run = sampled(f"work_until({has_tried})", **settings)
    assert run.exit_code == 0
    assert kernels(run.main)["copy"] >= 1
    assert words in warnings_of(run.main.meta)
    assert told_of(run.main).host["resident_bytes"].samples > 0


def test_nvml_that_hangs_holds_nobody_up(sampled: Record) -> None:
    run = sampled("work_until_asked()", NVML_SLOW_MS=60_000)
    assert run.exit_code == 0
    assert kernels(run.main)["copy"] >= 1
    assert "NVML does not return" in run.talk
    assert "no telemetry of GPUs: NVML does not return" in warnings_of(run.main.meta)


@pytest.mark.slow
def test_a_session_after_nvml_has_hung_says_so(record: Record) -> None:
    body = """
    for name in ("first.bragg", "second.bragg"):
        session = bragg.start(name, backend="cuda", telemetry_hz=50)
        if name == "first.bragg": work_until_asked()
        work(0.1)
        print(session.stop().meta["telemetry"]["reason"])
    """
    run = record(body, START + WORK, NVML_SLOW_MS=60_000, CLOCK="real")
    assert run.output.splitlines()[-2:] == ["NVML does not return"] * 2


def test_slow_calls_are_counted_as_missed_samples(sampled: Record) -> None:
    run = sampled("work(1)", NVML_SLOW_MS=20)
    assert told_of(run.main).missed_samples > 0
    assert "NVML took longer than the interval" in warnings_of(run.main.meta)


def test_a_program_without_a_gpu_has_telemetry_of_its_host(sampled: Record) -> None:
    body = """
    has_two = lambda told: told and told["host"].get("resident_bytes", {}).get("samples", 0) >= 2
    with bragg.scope("idle"): wait_for(has_two, "telemetry")
    """
    run = sampled(body, start="import bragg\nfrom sampling import wait_for\n", backend="cpu")
    told = told_of(run.main)
    assert told.gpus == ()
    assert told.host["resident_bytes"].samples >= 2


def test_a_forked_child_has_telemetry_of_its_own(sampled: Record) -> None:
    body = """
    import os
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        from fake_cuda import FakeCuda
        gpu = FakeCuda()
        work_until_asked()
        work(0.4)
        os._exit(0)
    os.waitpid(child, 0)
    """
    run = sampled(body, start=WORK)
    assert run.exit_code == 0
    (child,) = (profile for profile in run.profiles if kernels(profile))
    (gpu,) = told_of(child).gpus
    assert gpu.energy_j == pytest.approx(WATT * gpu.energy_ns / 1e9, rel=0.02)


def test_processes_that_share_a_gpu_sample_it_once(sampled: Record) -> None:
    body = """
    import os
    sampled, samples = os.pipe()
    child = os.fork()
    from fake_cuda import FakeCuda
    gpu = FakeCuda()
    if child == 0: os.read(sampled, 1)
    work_until_asked()
    work(0.4)
    if child == 0: os._exit(0)
    os.write(samples, b".")
    os.waitpid(child, 0)
    print(os.getpid())
    """
    run = sampled(body, start=WORK, GPUS="shared")
    gpus = [gpu for profile in run.profiles for gpu in told_of(profile).gpus]
    assert sorted(gpu.sampled_by or 0 for gpu in gpus) == [0, int(run.output.split()[-1])]
    assert {gpu.mean("power_w") for gpu in gpus} == {WATT}
    for gpu in gpus:
        assert gpu.energy_j == pytest.approx(WATT * gpu.energy_ns / 1e9, rel=0.02)


def test_a_program_that_is_told_to_end_leaves_its_energy(sampled: Record) -> None:
    run = sampled("work_until_asked(); work(0.5)\nimport os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwork(60)")
    assert run.exit_code in (-signal.SIGTERM, 128 + signal.SIGTERM)
    (gpu,) = told_of(run.main).gpus
    assert gpu.energy_j is not None
    assert gpu.energy_j == pytest.approx(WATT * gpu.energy_ns / 1e9, rel=0.02)


def test_nothing_is_sampled_for_a_session_that_has_ended(record: Record) -> None:
    body = """
    other = bragg.start("other.bragg", backend="cuda", telemetry_hz=0)
    session = bragg.start("short.bragg", backend="cuda", telemetry_hz=50)
    work_until_asked(b"nvmlDeviceGetClockInfo", 6)
    short = session.stop()
    work(0.5)
    again = bragg.start("again.bragg", backend="cuda", telemetry_hz=50)
    work_until_asked(b"nvmlDeviceGetClockInfo", 6)
    both = again.stop()
    print("telemetry" in other.stop().meta)
    print(*(profile.meta["telemetry"]["sampling"]["samples"] for profile in (short, both)))
    print(*(profile.meta["telemetry"]["devices"]["0"]["energy_ns"] / 1e9 for profile in (short, both)))
    """
    run = record(body, start=START + WORK, telemetry=0, CLOCK="real")
    asked, counts, times = run.output.splitlines()[-3:]
    first, both = map(int, counts.split())  # of one thread, which the other session keeps
    first_s, second_s = map(float, times.split())
    assert asked == "False"
    assert 1 < first <= 50 * first_s + 12
    assert 1 < both - first <= 50 * second_s + 12


def test_phases_have_their_own_sums_which_unite(sampled: Record) -> None:
    body = """
    session = bragg.start("phases.bragg", backend="cuda", telemetry_hz=50)
    work_until_asked(); work(0.5)
    session.advance_phase()
    nvml.bragg_fake_nvml_set(b"nvml_power_mw", ctypes.c_int64(100_000))
    work(0.5)
    first = session.phase_profile(0).meta["telemetry"]
    profile = session.stop()
    print(first["devices"]["0"]["power_w"]["mean"], profile.meta["telemetry"]["devices"]["0"]["power_w"]["mean"])
    for gpu in (first["devices"]["0"], profile.meta["telemetry"]["devices"]["0"]):
        print(gpu["energy_j"], gpu["energy_ns"] / 1e9)
    """
    run = sampled(body)
    (first, both), (first_j, first_s), (both_j, both_s) = (
        map(float, line.split()) for line in run.output.splitlines()[-3:]
    )
    assert first == pytest.approx(WATT, rel=0.02)
    assert 100 < both < WATT
    assert first_j == pytest.approx(first_s * WATT, rel=0.3)
    second_s = both_s - first_s  # until the program goes on, as many watts as before
    assert 0.7 * second_s * 100 < both_j - first_j < 1.1 * second_s * WATT
