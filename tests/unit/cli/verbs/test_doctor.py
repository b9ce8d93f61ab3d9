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
    monkeypatch.setattr(doctor_module.ProbeProcess, "__init__", lambda self: None)
    monkeypatch.setattr(doctor_module.ProbeProcess, "result", lambda self: said)
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


def test_doctor_is_quick_without_a_gpu(bragg_process: Bragg) -> None:
    outcome = bragg_process("doctor")
    assert outcome.cpu_s <= DOCTOR_LIMIT_S
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
