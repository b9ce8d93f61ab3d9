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


def test_text_has_a_line_for_each_check_and_a_conclusion(bragg: Bragg, probe: dict[str, object]) -> None:
    lines = bragg("doctor").stdout.splitlines()
    assert any(line.startswith("ok") and "native core" in line for line in lines)
    assert lines[-1].startswith("Can be recorded here: ")
    assert lines[-1].endswith("Next: bragg demo")


def test_missing_core_blocks_everything(bragg: Bragg, probe: dict[str, object]) -> None:
    probe.clear()
    probe["error"] = "ImportError: no _core"
    outcome = bragg("doctor")
    assert outcome.exit_code == 4
    assert "blocked  native core            ImportError: no _core" in outcome.stdout
    assert outcome.stdout.splitlines()[-1].startswith("Nothing can be recorded here.")


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
