from __future__ import annotations

import json

import pytest

from bragg.cli.verbs import doctor as doctor_module
from tests.unit.cli.conftest import Bragg

# 0.2 s, and 1.6 s where PyTorch and JAX are installed; the rest is for machines that are slow or busy.
DOCTOR_LIMIT_S = 8.0
PROBE = {"core": "/lib/libbragg_core.so", "candidates": [], "cuda": {"state": "failed", "reason": "no driver"}}


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the probe says; tests change it."""
    said: dict[str, object] = dict(PROBE)
    monkeypatch.setattr(doctor_module.ProbeProcess, "__init__", lambda self, *arguments: None)
    monkeypatch.setattr(doctor_module.ProbeProcess, "result", lambda self, timeout_s=0.0: said)
    return said


def test_doctor_looks_at_twenty_things_and_more(bragg: Bragg, probe: dict[str, object]) -> None:
    outcome = bragg("doctor", "--json")
    checks = json.loads(outcome.stdout)["checks"]
    assert outcome.exit_code == 0
    assert len({check["name"] for check in checks}) >= 20
    assert all(check.keys() == {"name", "state", "found", "blocks", "fix"} for check in checks)


def test_every_defect_says_what_it_blocks_or_how_to_fix_it(bragg: Bragg, probe: dict[str, object]) -> None:
    checks = json.loads(bragg("doctor", "--json").stdout)["checks"]
    limited = [check for check in checks if check["state"] in ("limited", "blocked")]
    assert [check for check in limited if not (check["blocks"] and check["fix"])] == []


def test_the_first_three_lines_say_what_can_be_recorded_what_to_fix_and_what_is_next(
    bragg: Bragg, probe: dict[str, object]
) -> None:
    recorded, to_fix, following, *_ = bragg("doctor").stdout.splitlines()
    assert recorded.startswith("Can be recorded here: Python call paths, ")
    assert recorded.endswith("; GPU times cannot (NVIDIA GPU: none).")
    assert to_fix == "Nothing needs to be fixed."
    assert following == "Next: bragg demo, or bragg run your_script.py"


def test_checks_that_limit_nothing_are_shown_when_asked_for(bragg: Bragg, probe: dict[str, object]) -> None:
    brief, whole = (bragg("doctor", *flags).stdout.splitlines() for flags in ([], ["--all"]))
    fine = [line for line in whole if line.startswith("ok")]
    assert any("native core" in line for line in fine)
    assert not any(line.startswith("ok") for line in brief)
    assert any(line.startswith("note") and "NVIDIA GPU" in line for line in brief)
    assert brief[-1].endswith(" other checks limit nothing: bragg doctor --all")
    assert whole[:3] == brief[:3]


def test_what_another_tool_holds_is_the_first_thing_to_fix(
    bragg: Bragg, probe: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/other.so")
    line = bragg("doctor").stdout.splitlines()[1]
    assert line == "To fix: CUDA_INJECTION64_PATH belongs to /opt/other.so. Unset it, or start without the other tool"


def test_missing_core_blocks_everything(bragg: Bragg, probe: dict[str, object]) -> None:
    probe.clear()
    probe["error"] = "ImportError: no _core"
    outcome = bragg("doctor")
    assert outcome.exit_code == 4
    first, to_fix, *table = outcome.stdout.splitlines()
    assert first.startswith("Nothing can be recorded here.")
    assert to_fix.startswith("To fix: native core ImportError: no _core. ")
    assert any(line.startswith("blocked  native core ") and "ImportError: no _core" in line for line in table)


def test_counters_are_listed_by_name_set_and_metric(bragg: Bragg, probe: dict[str, object]) -> None:
    read = {"counts": "DRAM read", "unit": "B/s", "sets": "default dram", "metrics": ["dram__bytes_read.sum"]}
    link = {"counts": "NVLink send", "unit": "B/s", "sets": "nvlink", "metrics": []}
    told = {"chip": "GH100", "counters": {"dram_read": read, "nvlink_send": link}, "sets": {"default": 1, "dram": 2}}
    probe["counters"] = {**told, "metrics": ["a.sum", "b.ratio"]}
    lines = bragg("doctor", "--counters").stdout.splitlines()
    assert lines[0] == "GH100: counters for bragg run --counters NAME[,NAME]"
    assert lines[1].split() == ["dram_read", "DRAM", "read,", "B/s", "dram__bytes_read.sum"]
    assert "none that this GPU counts in one pass" in lines[2]
    assert "  default      dram_read" in lines
    assert any(line.startswith("  dram  ") and "2 passes together" in line for line in lines)
    assert lines[-2:] == ["  a.sum", "  b.ratio"]
    assert json.loads(bragg("doctor", "--counters", "--json").stdout)["metrics"] == ["a.sum", "b.ratio"]


@pytest.mark.parametrize(
    ("said", "reason"), [({"counters": {"reason": "no driver"}}, "no driver"), ({"error": "lost"}, "lost")]
)
def test_counters_that_cannot_be_listed_are_an_error(
    bragg: Bragg, probe: dict[str, object], said: dict[str, object], reason: str
) -> None:
    probe.update(said)
    outcome = bragg("doctor", "--counters")
    assert outcome.exit_code == 4
    assert f"no hardware counters: {reason}" in outcome.stderr


def test_doctor_is_quick_without_a_gpu(bragg_process: Bragg) -> None:
    outcome = bragg_process("doctor")
    assert outcome.cpu_s <= DOCTOR_LIMIT_S
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
