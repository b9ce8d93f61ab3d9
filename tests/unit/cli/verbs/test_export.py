from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.verbs import export as export_module
from bragg.registry import FORMATS
from tests.support.traces import trace_from_text
from tests.unit.cli.conftest import Bragg


def test_format_is_told_by_the_suffix(bragg: Bragg, profile_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.hatchet"
    outcome = bragg("export", profile_file, "-o", output, "--json")
    values = json.loads(outcome.stdout)
    assert (values["format"], values["file"], values["size_bytes"]) == ("hatchet", str(output), output.stat().st_size)


def test_output_is_named_after_the_profile(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("export", profile_file, "-f", "speedscope")
    assert outcome.exit_code == 0
    assert profile_file.with_suffix(FORMATS["speedscope"].suffix).exists()
    assert outcome.stderr.startswith(f"Wrote {profile_file.with_suffix('.speedscope.json')} (")
    assert outcome.stderr.endswith("): speedscope flame graphs and timelines. Next: open it in speedscope\n")


def test_a_large_document_says_how_it_gets_smaller(
    bragg: Bragg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "_LARGE_BYTES", 100)
    monkeypatch.chdir(tmp_path)
    formats.export(trace_from_text("thread 1\n  0-10 step"), "bragg", Path("a.bragg"))
    talk = bragg("export", "a.bragg", "-f", "chrome").stderr
    assert talk.endswith("chrome://tracing; much smaller: -o a.chrome.json.gz, or -f perfetto\n")
    assert "smaller" not in bragg("export", "a.bragg", "-o", "a.chrome.json.gz").stderr
    compressed, plain = Path("a.chrome.json.gz").read_bytes(), Path("a.chrome.json").read_bytes()
    assert gzip.decompress(compressed) == plain


def test_output_may_be_a_pipe(bragg_process: Bragg, bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg_process("export", profile_file, "-f", "collapsed", "-o", "-")
    assert outcome.stdout.splitlines()[0] == "train.py:40@main;forward;matmul 12000000"
    assert (outcome.stderr, Path("-").exists()) == ("", False)
    assert bragg("export", profile_file, "-f", "collapsed", "-o", "-", "--json").exit_code == 2


def test_existing_file_is_overwritten_only_by_force(bragg: Bragg, profile_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.collapsed"
    output.write_text("precious")
    assert bragg("export", profile_file, "-o", output).exit_code == 2
    assert output.read_text() == "precious"
    assert bragg("export", profile_file, "-o", output, "--force").exit_code == 0
    assert output.read_text() != "precious"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-o", "out.xyz"], "error: no format has the suffix of out.xyz"),
        (["-f", "xyz"], "error: unknown format 'xyz'"),
        ([], "error: neither format nor output is given"),
        (["-f", "capture", "-o", "a.part"], "error: format 'capture' can be read but not written"),
    ],
)
def test_unknown_format_is_a_usage_error(bragg: Bragg, profile_file: Path, arguments: list[str], error: str) -> None:
    outcome = bragg("export", profile_file, *arguments)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith(error)
    assert "perfetto" in outcome.stderr or "can be read" in outcome.stderr
    assert "nsys" not in outcome.stderr  # which is only read


def test_unwritable_place_is_said(bragg: Bragg, profile_file: Path) -> None:
    outcome = bragg("export", profile_file, "-f", "collapsed", "-o", "missing/out.collapsed")
    assert outcome.exit_code == 6
    assert outcome.stderr.startswith("error: cannot write")
