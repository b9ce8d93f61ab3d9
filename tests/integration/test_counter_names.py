"""The counters that `--counters` names are those of a real CUPTI, which knows all chips without a GPU."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bragg.record.counter_names import COUNTERS, SETS
from tests.support.cupti_wheels import unpacked

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "native/backends/cuda/counters/counter_metrics.cpp"
CUPTI = "nvidia-cuda-cupti==13.0.85"  # the last release that answers without a driver is 13.1
ROW = re.compile(r'\{"(\w+)",\s*"([\w ]+)",\s*\{"[^"]*",\s*"[^"]*",\s*\w+,\s*\{(\{.*?\})\},', re.DOTALL)
CHIPS = ("GH100", "GB100", "AD102", "GB202")
WITHOUT_NVLINK = WITHOUT_UNITS = {"AD102", "GB202"}


pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the libraries are those of x86-64")


def named_counters() -> dict[str, tuple[set[str], list[list[str]]]]:
    """Sets and alternatives of each counter."""
    text = re.sub(r'"\s*OF_PEAK', '.avg.pct_of_peak_sustained_elapsed"', TABLE.read_text())
    return {
        name: (
            set(sets.split()),
            [re.findall(r'"([^"]+)"', each) for each in re.findall(r"\{([^{}]*)\}", alternatives)],
        )
        for name, sets, alternatives in ROW.findall(text)
    }


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    """By chip, what it has of all counters."""
    directory = unpacked(CUPTI, request.config.cache.mkdir("cupti_counters"), "lib")
    wanted = {name: alternatives for name, (_, alternatives) in named_counters().items()}
    command = [sys.executable, "-m", "tests.support.cupti_counters", str(directory), *CHIPS]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_table_is_read_as_a_whole() -> None:
    counters = named_counters()
    assert {"dram_read", "tensor_active", "occupancy", "l2_hit_rate", "pcie_write", "nvlink_send"} <= set(counters)
    assert len(counters) == TABLE.read_text().count(',\n       {"') + TABLE.read_text().count('", {"')


def test_names_that_are_checked_before_a_recording_are_those_of_the_table() -> None:
    counters = named_counters()
    assert set(COUNTERS) == set(counters)
    assert set(SETS) == {name for sets, _ in counters.values() for name in sets}


@pytest.mark.parametrize("chip", CHIPS)
def test_each_chip_has_the_counters_of_all_sets_in_one_pass(told: dict[str, Any], chip: str) -> None:
    missing = {name for name, metrics in told[chip]["chosen"].items() if metrics is None}
    of_nvlink = {"nvlink_receive", "nvlink_send"} if chip in WITHOUT_NVLINK else set()
    of_units = {"l1_busy", "pipe_busy"} if chip in WITHOUT_UNITS else set()
    assert missing == of_nvlink | of_units
    assert told[chip]["passes"] == 1


def test_chips_name_the_bytes_of_dram_differently(told: dict[str, Any]) -> None:
    assert told["GH100"]["chosen"]["dram_read"] == ["dram__bytes_read.sum"]
    assert told["GB202"]["chosen"]["dram_read"] == ["dram__bytes_op_read.sum"]
