from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bragg.cli.verbs.analyze import analyze
from bragg.errors import UsageError
from tests.support.recordings import DEFAULT_RECORDINGS, SAMPLE


def run(*arguments: str) -> str:
    result = CliRunner().invoke(analyze, [str(SAMPLE), *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_default_is_a_sentence_and_findings_with_lines() -> None:
    lines = run().splitlines()
    assert lines[0].startswith("The GPU bounds most of the program: in 6 steps of 16.8 ms, the GPU works 64 % and")
    assert lines[1] == "  The steady state is 0.7 % of the run; of the rest imports took 12.6 s (train_gpt2.py:16)."
    assert any("saves 34 % of a step (5.71 ms)  full-precision-matmul, likely" in line for line in lines)
    assert "   train_gpt2.py:71  loss = model(input_ids=tokens, labels=tokens).loss" in lines
    assert lines[-2].startswith("More rules could judge a recording with --instrument, --gpu-api, --counters dram")
    assert lines[-1] == "Could not judge: unused-gradients, without counts of autograd"
    assert len(lines) <= 25
    assert all(lines)


def test_an_order_that_is_not_that_of_the_gains_is_explained() -> None:
    (path,) = (path for path in DEFAULT_RECORDINGS if "dynamic_net" in path.stem)
    lines = CliRunner().invoke(analyze, [str(path)], catch_exceptions=False).output.splitlines()
    gains = [line.partition("saves ")[2].partition(" %")[0] for line in lines if line[:2] in ("1.", "2.")]
    assert gains == ["38", "70"]
    order = "In this order, since a cause stands before what it explains in part, and what costs precision last"
    assert f"{order}; the gains overlap, and do not add up" in lines
    assert not any(line.startswith("In this order") or "overlap" in line for line in run().splitlines())


def test_the_gate_is_confidence_and_gain() -> None:
    for gate, expected in (("likely", 3), ("proven", 0)):
        arguments = [str(SAMPLE), "--rule", "full-precision-matmul", "--fail-on", gate]
        assert CliRunner().invoke(analyze, arguments).exit_code == expected
    arguments = [str(SAMPLE), "--rule", "full-precision-matmul", "--fail-on", "likely", "--least-gain", "90%"]
    assert CliRunner().invoke(analyze, arguments).exit_code == 0


def test_json_has_gain_evidence_and_place() -> None:
    (profile,) = json.loads(run("--json", "--rule", "full-precision-matmul"))["profiles"]
    (finding,) = profile["findings"]
    assert finding["gain"]["share"] == pytest.approx(0.341, abs=0.01)
    assert (finding["file"], finding["line"], finding["confidence"]) == ("train_gpt2.py", 71, "likely")
    assert {each["unit"] for each in finding["evidence"]} == {"1", "share", "ns"}


def test_the_brief_answer_is_short() -> None:
    output = run("--brief")
    assert len(output.encode()) <= 2048
    first = json.loads(output)["profiles"][0]["findings"][0]
    assert set(first) == {"rule", "gain", "confidence", "at", "message", "change"}


def test_the_brief_answer_to_many_profiles_is_short_too() -> None:
    arguments = [*map(str, DEFAULT_RECORDINGS), *[str(SAMPLE)] * 12, "--brief"]
    output = CliRunner().invoke(analyze, arguments, catch_exceptions=False).output
    assert len(output.encode()) <= 2048
    answer = json.loads(output)
    assert answer["profiles"][0]["file"] == str(DEFAULT_RECORDINGS[0])[-160:]
    assert len(answer["profiles"]) + answer["more"] == len(DEFAULT_RECORDINGS) + 12


def test_the_brief_answer_has_paths_that_programs_can_open() -> None:
    (path,) = (path for path in DEFAULT_RECORDINGS if "llama" in path.stem)
    output = CliRunner().invoke(analyze, [str(path), "--brief"], catch_exceptions=False).output
    first = json.loads(output)["profiles"][0]["findings"][0]
    assert first["at"] == "tests/gpu/programs/real/llama_generate.py:12"


def test_sarif_has_the_line() -> None:
    (document,) = json.loads(run("--sarif", "--rule", "full-precision-matmul"))["runs"]
    (result,) = document["results"]
    assert document["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "full-precision-matmul"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 71


def test_markdown_is_a_table() -> None:
    assert "| 34 % | likely | full-precision-matmul: " in run("--markdown")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "--sarif"], "exclude each other"),
        (["--least-gain", "much"], "is not a share"),
        (["--rule", "no-such"], "unknown rule"),
    ],
)
def test_what_is_not_understood_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(analyze, [str(SAMPLE), *arguments], catch_exceptions=False)


def test_a_profile_where_the_name_of_a_kernel_belongs_is_answered_with_the_order() -> None:
    with pytest.raises(UsageError, match="--bundle needs the name of a kernel") as error:
        CliRunner().invoke(analyze, ["--bundle", str(SAMPLE)], catch_exceptions=False)
    assert error.value.hint == f"For example: bragg analyze {SAMPLE} --bundle squared_relu_kernel"


def test_a_profile_without_gpu_says_what_the_host_did(tmp_path: Path) -> None:
    from bragg import formats
    from tests.support.profiles import profile_from_text

    path = tmp_path / "cpu.bragg"
    formats.bragg.write(profile_from_text("root\n  main host=3ms"), path)
    lines = CliRunner().invoke(analyze, [str(path)]).output.splitlines()
    assert lines[0] == (
        "Python and native code bound the program, which uses no GPU: of 3.00 ms on the host after imports, Python and "
        "native code take 100 %."
    )
    assert "No rule found a cause; most rules are for programs that use a GPU." in lines
    assert not any("Options of bragg run" in line for line in lines)


_PLUGIN = """
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, Quantity, Severity

def find(evidence):
    steps = Quantity("steps", evidence.n_steps)
    yield Finding("few-steps", Severity.NOTE, "a short run", "record more steps", file="train.py", line=3,
                  evidence=(steps,), gain=evidence.gain(0.5 * evidence.wall_ns), confidence=Confidence.LIKELY)

FEW_STEPS = Rule(find, "runs with few steps")
"""


def test_an_installed_package_adds_a_rule(tmp_path: Path) -> None:
    installed = tmp_path / "few_steps-1.0.dist-info"
    installed.mkdir()
    (tmp_path / "few_steps.py").write_text(_PLUGIN)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: few-steps\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[bragg.rules]\nfew-steps = few_steps:FEW_STEPS\nfills = few_steps:FEW_STEPS\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "bragg", "analyze", str(SAMPLE), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    (profile,) = json.loads(done.stdout)["profiles"]
    first = profile["findings"][0]
    assert (first["rule"], first["line"], first["gain"]["share"]) == ("few-steps", 3, 0.5)
    assert first["evidence"] == [{"name": "steps", "value": 6, "unit": "1"}]
    # A rule of bragg's own keeps its name.
    assert sum(finding["rule"] == "few-steps" for finding in profile["findings"]) == 1


def test_the_newest_profile_is_meant_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(SAMPLE, tmp_path / "older.bragg")
    monkeypatch.chdir(tmp_path)
    named = CliRunner().invoke(analyze, ["older.bragg"]).output
    assert CliRunner().invoke(analyze, []).output == f"older.bragg\n{named}"
    assert CliRunner().invoke(analyze, [str(tmp_path)]).output == f"{tmp_path}/older.bragg\n{named}"
