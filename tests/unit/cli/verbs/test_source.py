from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.main import main
from tests.support.profiles import profile_from_text
from tests.support.recordings import RECORDINGS
from tests.support.sampled_kernels import sampled_profile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.bragg"
    formats.export(sampled_profile(), "bragg", path)
    return path


def test_the_hottest_kernel_is_shown_with_its_samples(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file)]) == 0
    output = capsys.readouterr()
    assert "60.0 %" in output.out
    assert "values = tl.load(x)" in output.out
    assert output.err == ""


def test_kernels_of_the_same_name_are_named_on_stderr(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "softmax"]) == 0
    assert capsys.readouterr().err == "1 more kernel has this name: softmax<BLOCK=64 w4 s3>\n"


def test_another_text_is_shown_as_one_json_object(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "softmax", "--ir", "sass", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    values = json.loads(line)
    assert (values["view"], values["ir"], values["file"]) == ("source", "sass", str(file))
    assert [row["samples"] for row in values["sections"][0]["lines"]] == [60, 30, 10]


def test_a_text_that_is_not_there_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "softmax", "--ir", "ptx"]) == 7
    assert "no PTX of softmax<BLOCK=1024 w4 s3>" in capsys.readouterr().err


def test_a_kernel_that_is_not_there_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "gelu"]) == 2
    assert "no kernel is called 'gelu'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["softmax"]])
def test_the_newest_profile_is_meant_where_none_is_named(
    words: list[str], file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["source", *words]) == 0
    assert "values = tl.load(x)" in capsys.readouterr().out


def test_a_profile_whose_kernels_have_no_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(RECORDINGS[0])]) == 7
    assert "those of libraries (cuBLAS, ATen, XLA) have none" in capsys.readouterr().err


def test_a_kernel_that_was_interpreted_says_why_it_has_no_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = replace(profile_from_text("root\n  add<w4 s3> 3us #kernel"), meta={"interpreted_launches": 3})
    formats.export(profile, "bragg", tmp_path / "run.bragg")
    assert main(["source", str(tmp_path / "run.bragg")]) == 7
    assert "interpreter executed it, which compiles nothing" in capsys.readouterr().err
    formats.export(replace(profile, meta={"target": "sm_90"}), "bragg", tmp_path / "target.bragg")
    assert main(["source", str(tmp_path / "target.bragg")]) == 7
    assert "it was not compiled for sm_90" in capsys.readouterr().err
