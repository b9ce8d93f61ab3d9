from __future__ import annotations

import json
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.verbs import demo as demo_module
from bragg.model import Profile
from tests.unit.cli.conftest import Bragg


def test_demo_records_and_shows_a_real_program(bragg: Bragg) -> None:
    outcome = bragg("demo")
    assert outcome.exit_code == 0
    assert "Wrote demo.bragg" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("Next: ")
    assert "forward" in outcome.stdout
    assert formats.load("demo.bragg").total("host_time") > 0


def test_sample_is_shown_where_there_is_no_gpu(
    bragg: Bragg, training: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = tmp_path / "sample.bragg"
    formats.export(training, "bragg", sample)
    monkeypatch.setattr(demo_module, "_SAMPLE", sample)
    outcome = bragg("demo")
    assert f"a profile that was recorded on a GPU; all of it: bragg view {sample}" in outcome.stderr
    assert "matmul" in outcome.stdout


def test_json_names_profile_and_sample(bragg: Bragg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_SAMPLE", Path("nowhere.bragg"))
    values = json.loads(bragg("demo", "--json").stdout.splitlines()[-1])
    assert (values["profiles"][0]["file"], values["sample"]) == ("demo.bragg", None)
