"""What `bragg doctor` says of instruction sampling, on the fake GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_cuda import environment


@pytest.mark.parametrize(
    ("settings", "found", "fix"),
    [
        ({}, "can be taken", ""),
        (
            {"FAIL": "cuptiPCSamplingEnable=35"},
            "the driver lets only administrators do it (RmProfilingAdminOnly in /proc/driver/nvidia/params is 1)",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ({"FAIL": "cuptiPCSamplingEnable=43"}, "a MIG instance cannot", "use a GPU that is not partitioned"),
        ({"OMIT": "cuptiPCSamplingGetData"}, "cannot sample instructions", "CUPTI 12.4 or later"),
    ],
    ids=["possible", "no permission", "MIG", "old CUPTI"],
)
def test_doctor_tries_it_and_says_what_to_do(
    fakes_directory: Path, settings: dict[str, object], found: str, fix: str
) -> None:
    command = [sys.executable, "-m", "bragg", "doctor", "--json"]
    environ = {**os.environ, **environment(fakes_directory, settings)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    (check,) = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "Instruction samples"]
    assert found in check["found"]
    assert fix in check["fix"]
    assert check["blocks"] == ("bragg run --sample" if fix else "")
