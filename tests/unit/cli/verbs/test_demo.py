from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.verbs import demo as demo_module
from bragg.data.sample import sample
from bragg.model import Profile
from bragg.views.terminal.story import story_lines
from bragg.views.text.style import PLAIN
from tests.unit.cli.conftest import Bragg


def test_demo_records_and_shows_a_real_program(bragg: Bragg) -> None:
    outcome = bragg("demo")
    assert outcome.exit_code == 0
    told = outcome.stderr.splitlines()
    assert any("a loop of Python does little in each turn" in line for line in told)
    assert any(re.match(r" +demo_cpu\.py:3[01]  (for index, value|total \+= value)", line) for line in told)
    assert "Wrote demo.bragg" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("Next: ")
    assert "demo_cpu.py" in outcome.stdout
    profile = formats.load("demo.bragg")
    assert profile.total("host_time") > 0
    assert "forward" in profile.tree.frames.name


def test_sample_is_shown_where_there_is_no_gpu(
    bragg: Bragg, training: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "sample", lambda: training)
    outcome = bragg("demo")
    assert (
        "A profile that was recorded on a GPU; all of it: bragg demo --files, then bragg view sample-h100.bragg"
        in outcome.stderr
    )


def test_the_story_of_the_sample_takes_at_most_ten_lines() -> None:
    lines = story_lines(sample(), PLAIN)
    assert len(lines) <= 10
    assert re.match(r"start [\d.]+ s \| warm-up [\d.]+ s \| steady .* GPU busy", lines[1])
    assert lines[2].startswith("The GPU bounds most of the program: ")
    assert lines[-1].startswith("The steady state is 0.7 % of the run; of the rest imports took 12.6 s")
    assert "matrix products in 32-bit floating point without tensor cores" in lines[3]
    assert lines[4].strip() == "train_gpt2.py:71  loss = model(input_ids=tokens, labels=tokens).loss"
    assert lines[5].strip().startswith("Change: torch.set_float32_matmul_precision")


def test_a_program_of_the_user_is_not_overwritten(
    bragg: Bragg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo_cpu.py").write_text("mine")
    outcome = bragg("demo")
    assert outcome.exit_code == 2
    assert "demo_cpu.py is here already, and is another program" in outcome.stderr
    assert Path("demo_cpu.py").read_text() == "mine"


def test_json_names_the_profile(bragg: Bragg) -> None:
    values = json.loads(bragg("demo", "--json").stdout.splitlines()[-1])
    assert values["profiles"][0]["file"] == "demo.bragg"


def test_without_liblzma_there_is_no_sample(bragg: Bragg, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo_module, "CAN_UNPACK", False)
    monkeypatch.chdir(tmp_path)
    assert bragg("demo", "--files").stderr.splitlines() == [
        "Wrote examples",
        "sample-h100.bragg is left out: this Python was built without liblzma, which unpacks it",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["examples"]


def test_examples_and_sample_are_copied_and_nothing_is_overwritten(
    bragg: Bragg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bragg("demo", "--files").stderr == "Wrote examples, sample-h100.bragg\n"
    assert (tmp_path / "examples/debug/four_bugs.py").is_file()
    assert formats.load("sample-h100.bragg").total("gpu_time") == sample().total("gpu_time") > 0
    outcome = bragg("demo", "--files")
    assert (outcome.exit_code, outcome.stderr.splitlines()[0]) == (2, "error: examples is here already")
