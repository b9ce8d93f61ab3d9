"""Hardware counters, from the fake GPU to tracks of the timeline."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bragg.analyze.roofline import roofline
from bragg.model import Profile, TrackKind
from bragg.model.kernels.counters import kernel_counters
from bragg.model.table import FloatArray
from bragg.views.text.run_facts import RunFacts
from tests.support.fake_gpu_runs import START, Record, kernels

# The fake's copy reads 1,000 B in each ns.
COPY_NS = 1_000_000
COPIES = f"""
import time
from sampling import told, wait_for
gpu.set_knob("vary_ns", 0)
gpu.set_kernel_ns("copy", {COPY_NS})
def work(seconds):  # once at least
    end, now = time.monotonic() + seconds, 0
    while now < end:
        gpu.launch("copy"); gpu.synchronize(); time.sleep(0.004)
        now = time.monotonic()
def work_until(condition, session=None):  # of what is told of the counters of the first GPU
    wait_for(lambda told: condition(told["devices"]["0"]), "counters", session, lambda: work(0.1))
def wait_until_opened(session=None):
    wait_for(lambda told: "reason" in told or told.get("devices"), "counters", session)
gpu.launch("first"); gpu.synchronize()
if told("counters") is not None: wait_until_opened()
"""


@pytest.fixture
def counted(record: Record) -> Record:
    """`record`, for programs whose counters are sampled."""
    return partial(record, start=START + COPIES, data="trace", counters="default", counter_interval=200, CLOCK="real")


def values(profile: Profile, name: str) -> tuple[FloatArray, FloatArray]:
    """Times and values of a counter of the first GPU."""
    tracks = profile.tracks
    (track,) = (
        row
        for row in np.flatnonzero(tracks.kind == TrackKind.COUNTER).tolist()
        if tracks.label(row).startswith(name) and tracks.device[row] == 0
    )
    chosen = profile.counters.take(profile.counters.track == track)
    return chosen.time_ns, chosen.value


def test_bytes_of_counters_are_those_of_the_kernels(counted: Record) -> None:
    profile = counted('work_until(lambda device: device["samples"] > 7500)').main
    time_ns, _ = values(profile, "DRAM read")
    device = profile.meta["counters"]["devices"]["0"]
    assert device["chip"] == "GH100"
    assert device["samples"] == len(time_ns) > 7500
    assert np.min(np.diff(time_ns)) == 200_000
    (copy,) = (row for row in kernel_counters(profile) if row.kernel == "copy" and row.counter.startswith("DRAM read"))
    assert copy.rate == pytest.approx(1e12, rel=0.01)
    assert copy.sampled_ns > 20 * COPY_NS
    assert values(profile, "DRAM write")[1].max() == pytest.approx(1e12)
    assert values(profile, "SM active")[1].max() == pytest.approx(100)
    assert set(values(profile, "GPC clock (Hz)")[1].tolist()) == {1.8e9}


def test_counters_of_kernels_shorter_than_a_sample_are_told_apart(counted: Record) -> None:
    body = """
    gpu.set_kernel_ns("copy", 60_000)
    gpu.set_kernel_ns("matmul", 110_000)
    for i in range(1500):
        gpu.launch("copy" if i * 7919 % 13 < 5 else "matmul")
        if i % 7 == 0: gpu.synchronize()
    gpu.synchronize()
    """
    profile = counted(body).main
    found = {row.kernel: row for row in kernel_counters(profile) if row.counter.startswith("DRAM read")}
    tree, read = profile.tree, profile.own("dram_read_bytes")
    for name, rate in (("copy", 1e12), ("matmul", 1e11)):
        assert found[name].is_told
        assert found[name].rate == pytest.approx(rate, rel=0.05)
        nodes = np.isin(tree.frame, [row for row, each in enumerate(tree.frames.name) if each == name])
        known = rate * profile.own("gpu_time")[nodes].sum() / 1e9
        assert read[nodes].sum() == pytest.approx(known, rel=0.05)
        assert 0 < profile.own("dram_read_bytes_error")[nodes].sum() < 0.1 * known
        assert profile.own("dram_counted_time")[nodes].sum() == profile.own("gpu_time")[nodes].sum()
    assert not found["first"].is_told
    assert profile.total("dram_read_bytes") == read.sum()  # nothing for `first`, whose rate is not told
    assert profile.total("dram_counted_time") < profile.total("gpu_time")
    both = profile.total("dram_read_bytes") + profile.total("dram_write_bytes")
    assert profile.total("dram_bytes") == pytest.approx(both)


def test_the_first_sample_is_dropped(counted: Record) -> None:
    """It is as long as nobody sampled, and what it says is not of the program."""
    profile = counted("work(0.1)").main
    assert values(profile, "DRAM read")[1].max() <= 1.001e12
    assert profile.meta["counters"]["devices"]["0"]["irregular"] >= 1


def test_counters_that_another_process_has_are_told_and_the_program_goes_on(counted: Record) -> None:
    run = counted("work(0.1)", COUNTERS_BUSY="1")
    assert run.exit_code == 0
    assert kernels(run.main)["copy"] >= 1
    assert "no counters of GPU 0" in run.talk
    assert "in use, by another process" in run.talk
    assert "HARDWARE_BUSY" in run.main.meta["counters"]["devices"]["0"]["reason"]


def test_an_overflow_is_counted_and_sampling_goes_on_less_often(counted: Record) -> None:
    profile = counted("work(0.3)\ngpu.set_knob('pm_buffer', 0)\nwork(0.6)", PM_BUFFER="200").main
    device = profile.meta["counters"]["devices"]["0"]
    assert device["overflows"] >= 1
    assert device["interval_ns"] > 200_000
    assert device["samples"] > 0
    assert device["gaps"] >= device["restarts"] >= 1
    assert device["gap_ns"] > 0
    assert any("were not sampled" in text for text in RunFacts(profile.meta).warnings())


def test_decoding_that_takes_long_keeps_to_a_tenth_of_a_core(counted: Record) -> None:
    meta = counted("work(1.2)", PM_DECODE_NS=100_000).main.meta
    device, lasted_ns = meta["counters"]["devices"]["0"], meta["stopped_ns"] - meta["started_ns"]
    # 0.1 ms of each: half of a core at the first interval of 0.2 ms.
    assert device["interval_ns"] >= 400_000
    assert device["restarts"] >= 1
    assert device["samples"] > 0
    # A tenth of the time, and beyond that one look at a full image, as on a busy machine; without a budget 0.8 s.
    assert device["cpu_ns"] < 0.1 * max(lasted_ns, 1e9) + 0.1e9


def test_gpus_of_one_process_share_the_budget(counted: Record) -> None:
    # At the interval asked for each would take 8 %, which one alone may. A busy machine is late to find another for
    # both: test_counter_rate.cpp has which it is.
    for seconds in (0.9, 3, 9, 20):
        body = f"""
        gpu.use_device(1); gpu.launch("copy"); gpu.synchronize(); gpu.use_device(0)
        work({seconds})
        """
        devices = counted(body, PM_DECODE_NS=40_000, counter_interval=500).main.meta["counters"]["devices"]
        assert len(devices) == 2
        share_of_core = sum(1 / device["interval_ns"] for device in devices.values()) * 40_000
        if share_of_core <= 0.1:
            break
    assert share_of_core < 2 * 0.08, devices


def test_a_gpu_that_begins_does_not_slow_the_sampling_of_another(record: Record) -> None:
    body = """
    gpu.use_device(1); gpu.launch("copy"); gpu.synchronize(); gpu.use_device(0)
    work(1.5)
    """
    options = {"data": "trace", "counters": "default", "CLOCK": "real", "PM_CONFIG_MS": 200, "PM_DECODE_NS": 40_000}
    devices = record(body, START + COPIES, **options).main.meta["counters"]["devices"]
    assert sum(1 / device["interval_ns"] for device in devices.values()) * 40_000 <= 0.1
    # One that began before the other was known needs a longer interval. On a busy machine samples may be lost, too.
    assert all(device["restarts"] <= 1 + device["images_full"] for device in devices.values())
    assert all(device["interval_ns"] < 3_200_000 << device["images_full"] for device in devices.values())


def test_metrics_of_an_old_release_are_left_out(counted: Record) -> None:
    profile = counted("work(0.1)", CUPTI_VERSION="12.8").main
    device = profile.meta["counters"]["devices"]["0"]
    assert device["left_out"] == ["DRAM read", "DRAM write"]
    assert "sm__inst_executed_realtime.sum" in device["metrics"]


def test_metrics_of_two_passes_and_unknown_ones_are_refused(counted: Record) -> None:
    profile = counted("work(0.1)", counters="dram_read,lts__t_sector_hit_rate.pct,lts__nonsense.sum").main
    device = profile.meta["counters"]["devices"]["0"]
    assert device["metrics"] == ["dram__bytes_read.sum"]
    assert device["left_out"] == ["lts__t_sector_hit_rate.pct", "lts__nonsense.sum"]


def test_sets_that_do_not_go_together_take_turns(counted: Record) -> None:
    body = """
    gpu.set_kernel_ns("copy", 1_000_000)
    gpu.set_kernel_ns("matmul", 2_000_000)
    def both():
        for name in ("copy", "matmul"): gpu.launch(name)
        gpu.synchronize(); time.sleep(0.002)
    def is_enough(told):
        device = told["devices"]["0"]
        return device["turns"] > 3 and all(each["sampled_ns"] > 0.6e9 for each in device["sets"])
    wait_for(is_enough, "counters", meanwhile=both)
    """
    profile = counted(body, counters="default,l2", counter_interval=1000).main
    device = profile.meta["counters"]["devices"]["0"]
    default, l2 = device["sets"]
    assert "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.ratio" in l2["metrics"]
    assert "tpc__warps_active_shader_cs_realtime.avg.pct_of_peak_sustained_elapsed" in default["metrics"]
    assert device["metrics"] == default["metrics"] + l2["metrics"]
    assert (device["left_out"], device["not_a_number"]) == ([], 0)
    assert device["restarts"] <= device["images_full"]  # a busy machine may be late to take samples
    assert device["samples"] == default["samples"] + l2["samples"]
    found = {(row.kernel, row.counter): row for row in kernel_counters(profile)}
    assert found["copy", "L2 sectors (1/s)"].rate == pytest.approx(2e12 / 32, rel=0.05)
    assert set(values(profile, "L2 hit rate")[1].tolist()) == {0.5}
    # The copy moves 2,000 of the 4,000 bytes that L2 has in a ns, the matmul 150, and keeps tensor cores busy.
    assert found["copy", "L2 busy (%)"].rate == pytest.approx(50, rel=0.05)
    assert found["matmul", "L2 busy (%)"].rate == pytest.approx(3.75, abs=1)
    assert found["matmul", "tensor pipe active (%)"].rate == pytest.approx(90, rel=0.05)
    assert found["copy", "DRAM read (B/s)"].rate == pytest.approx(1e12, rel=0.05)
    # Each was measured over a part of the launches, and counts for all.
    for counter in ("L2 sectors (1/s)", "DRAM read (B/s)"):
        assert 0 < found["copy", counter].sampled_share < 0.9
    copies = np.flatnonzero([name == "copy" for name in np.array(profile.tree.frames.name)[profile.tree.frame]])
    busy = profile.own("l2_busy_time")[copies].sum() / profile.own("gpu_time")[copies].sum()
    assert busy == pytest.approx(0.5, rel=0.05)


def test_units_tell_what_bounds_each_kernel(counted: Record) -> None:
    body = """
    for name in ("copy", "matmul"): gpu.set_kernel_ns(name, 10_000_000)
    for _ in range(30):
        for name in ("copy", "matmul"): gpu.launch(name)
        gpu.synchronize(); time.sleep(0.002)
    """
    profile = counted(body, counters="units", counter_interval=1000).main
    assert "sets" not in profile.meta["counters"]["devices"]["0"]
    found = {(row.kernel, row.counter): row.rate for row in kernel_counters(profile)}
    # The copy moves 2,000 of the 8,000 bytes that L1 has in a ns and of the 4,000 of L2.
    assert found["copy", "L1 busy (%)"] == pytest.approx(25, rel=0.05)
    assert found["copy", "L2 busy (%)"] == pytest.approx(50, rel=0.05)
    assert found["matmul", "pipe busy (%)"] == pytest.approx(90, rel=0.05)
    points = {point.name: point for point in roofline(profile).points}
    assert points["matmul"].bound == "compute"
    assert (points["copy"].is_bound_by_latency, points["copy"].util) == (True, pytest.approx(0.5, rel=0.05))


def test_a_library_of_another_release_that_came_first_is_told(
    counted: Record, fakes_directory: Path, tmp_path: Path
) -> None:
    other = tmp_path / "libnvperf_host.so"
    shutil.copy(fakes_directory / "libnvidia-ml.so.1", other)
    run = counted("work(0.1)", start=f"import ctypes; ctypes.CDLL({str(other)!r})\n" + START + COPIES)
    assert f"{other} was loaded before the one that comes with CUPTI" in "\n".join(RunFacts(run.main.meta).warnings())


def test_no_permission_is_told_with_what_to_do(counted: Record) -> None:
    run = counted("work(0.1)", FAIL="cuptiPmSamplingGetCounterAvailability=35")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in run.talk
    assert kernels(run.main)["copy"] >= 1


def test_a_gpu_that_fails_while_it_is_sampled_is_told_and_kernels_go_on(counted: Record) -> None:
    run = counted('work(0.1); work_until(lambda device: "reason" in device)', FAIL="cuptiPmSamplingDecodeData=999")
    assert run.exit_code == 0
    assert "cuptiPmSamplingDecodeData" in run.main.meta["counters"]["devices"]["0"]["reason"]
    assert any("no counters of GPU 0" in text for text in RunFacts(run.main.meta).warnings())
    assert kernels(run.main)["copy"] >= 1


def test_sessions_that_start_and_stop_again_and_again_all_count(counted: Record) -> None:
    body = """
    import json
    counts = []
    for number in range(20):
        options = dict(backend="cuda", context="shadow", data="trace", counters="dram", counter_interval_us=200)
        with bragg.profile(f"again{number}", **options) as session:
            wait_until_opened(session)
            work(0.1)
        device = session.profile().meta["counters"]["devices"]["0"]
        counts.append(device["samples"] if "reason" not in device else device["reason"])
    print(json.dumps(counts))
    """
    run = counted(body, counters="")
    assert run.exit_code == 0
    counts = json.loads(run.output.strip().splitlines()[-1])
    assert len(counts) == 20
    assert all(isinstance(count, int) and count > 0 for count in counts), counts


def test_counters_end_with_the_last_session_that_wants_them(counted: Record) -> None:
    """The session around them would have samples of what follows, and the program would be slower for nothing."""
    body = """
    import json
    devices = []
    for number, (counters, interval_us) in enumerate((("dram", 200), ("tensor", 400))):
        options = dict(backend="cuda", context="shadow", data="trace")
        with bragg.profile(f"within{number}", **options, counters=counters, counter_interval_us=interval_us) as session:
            wait_until_opened(session)
            work(0.1)
        devices.append(session.profile().meta["counters"]["devices"]["0"])
        work(0.3)
    print(json.dumps(devices))
    """
    run = counted(body, counters="")
    first, second = json.loads(run.output.strip().splitlines()[-1])
    for device, interval_ns in ((first, 200_000), (second, 400_000)):
        assert device["interval_ns"] == interval_ns or device["images_full"] > 1  # then it is doubled
    assert len(values(run.main, "DRAM read")[0]) == first["samples"] > 0
    assert len(values(run.main, "tensor pipe active")[0]) == second["samples"] > 0


def test_the_last_kernel_is_sampled(counted: Record) -> None:
    profile = counted("work(0.5)").main
    last_start_ns = profile.slices.start_ns[profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM].max()
    assert values(profile, "DRAM read")[0].max() > last_start_ns
