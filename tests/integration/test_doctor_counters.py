"""What `bragg doctor --counters` lists, on the fake GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_cuda import environment


def listed(fakes_directory: Path, *flags: str, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bragg", "doctor", "--counters", *flags]
    environ = {**os.environ, **environment(fakes_directory, settings)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_counters_of_one_pass_are_listed_by_name_and_metric(fakes_directory: Path) -> None:
    told = json.loads(listed(fakes_directory, "--json").stdout)
    assert told["chip"] == "GH100"
    assert told["counters"]["dram_read"]["metrics"] == ["dram__bytes_read.sum"]
    assert told["counters"]["sm_active"]["metrics"] == ["sm__cycles_active.avg", "sm__cycles_elapsed.avg"]
    assert told["counters"]["nvlink_send"]["metrics"] == []
    assert told["sets"]["default"] == 1
    assert "sm__inst_executed_realtime.sum" in told["metrics"]
    assert "lts__t_sector_hit_rate.pct" not in told["metrics"]  # two passes


def test_an_old_release_has_other_metrics(fakes_directory: Path) -> None:
    told = json.loads(listed(fakes_directory, "--json", CUPTI_VERSION="12.8").stdout)
    assert told["counters"]["dram_read"]["metrics"] == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=35"}, "NVreg_RestrictProfilingToAdminUsers=0"),
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=43"}, "MIG"),
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=33"}, "vGPU"),
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=40"}, "enable profiling in its host's vGPU settings"),
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=41"}, "confidential"),
        ({"FAIL": "cuptiPmSamplingGetCounterAvailability=45"}, "WSL"),
        ({"FAIL": "cuptiProfilerInitialize=15"}, "libnvperf_host.so"),
        ({"FAIL": "cuptiProfilerHostInitialize=1"}, "does not know the counters of this GPU: a newer CUPTI may"),
        ({"COUNTERS_BUSY": "1"}, "in use, by another process"),
        ({"CUPTI_VERSION": "12.4"}, "CUPTI 12.6 or later"),
        ({"FAIL": "cuInit=100"}, "CUDA error 100"),
    ],
    ids=[
        "no permission",
        "MIG",
        "vGPU",
        "vGPU without permission",
        "confidential computing",
        "WSL",
        "no libnvperf",
        "a GPU newer than CUPTI",
        "busy",
        "old CUPTI",
        "no device",
    ],
)
def test_what_is_in_the_way_is_told_with_what_to_do(
    fakes_directory: Path, settings: dict[str, object], reason: str
) -> None:
    done = listed(fakes_directory, **settings)
    assert done.returncode == 4
    assert reason in done.stderr


def test_nvml_of_the_driver_is_found(fakes_directory: Path) -> None:
    command = [sys.executable, "-m", "bragg", "doctor", "--json"]
    environ = {**os.environ, **environment(fakes_directory)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    (check,) = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "Telemetry"]
    assert check["found"].startswith("NVML of driver ")
