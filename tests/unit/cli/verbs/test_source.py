from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bragg import formats
from bragg.cli.main import main
from bragg.model import Finding, Severity
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


PROGRAM = """
root
  /w/train.py:2@<module>
    /w/train.py:1@f host=3ms
      _ZN2at4gemmEv 2ms"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A profile whose only kernel comes from a library, of which it keeps the program."""
    slow = Finding("slow", Severity.WARNING, "much", "less", file="/w/train.py", line=1)
    profile = replace(
        profile_from_text(PROGRAM), sources={"/w/train.py": "def f(): g()  # \x1b[2J\nf()\n"}, carried=[slow]
    )
    formats.export(profile, "bragg", tmp_path / "run.bragg")
    return tmp_path / "run.bragg"


LINES = [
    "/w/train.py  of the whole run: host_time 3.00 ms, gpu_time 2.00 ms",
    "host_time   gpu_time",
    "  3.00 ms    2.00 ms  1  def f(): g()  # \\x1b[2J",
    "                         ^ slow: much: less",
    "  3.00 ms    2.00 ms  2  f()",
]


@pytest.mark.parametrize("words", [[], ["train.py"], ["train.py:2"]])
def test_a_file_of_the_program_is_shown_with_times_and_findings(
    program: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["source", str(program), *words]) == 0
    assert capsys.readouterr().out.splitlines() == LINES


def test_a_file_of_the_program_of_the_newest_profile(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(program.parent)
    Path("train.py").write_text("changed since")
    assert main(["source", "train.py"]) == 0
    assert capsys.readouterr().out.splitlines() == LINES


def test_a_file_of_the_program_as_one_json_object(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(program), "train.py", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["view"], values["program"]) == ("program", "/w/train.py")
    assert values["total"] == {"host_time": 3e6, "gpu_time": 2e6}
    first, second = values["lines"]
    assert [each["rule"] for each in first["findings"]] == ["slow"]
    assert second == {"number": 2, "text": "f()", "host_time": 3e6, "gpu_time": 2e6, "findings": []}


BACKWARD = """
root
  a.py:1@f host=1ms
    aten::mm #operator host=2ms
      [backward] #state
        MmBackward0 #operator host=5ms
  a.py:3@f host=1ms
    aten::sum #operator host=9us
      [backward] #state
        SumBackward0 #operator host=9us
  a.py:2@f
    torch/_tensor.py:9@Tensor.backward host=1ms"""


def test_what_lines_have_of_their_backward_pass_is_told_below_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = replace(profile_from_text(BACKWARD), sources={"a.py": "x @ w\nloss.backward()\nloss.sum()\n"})
    formats.export(profile, "bragg", tmp_path / "run.bragg")
    said = (
        "host_time of the backward pass stands at the lines of the forward pass, not at backward(): 5.00 ms at line 1"
    )
    assert main(["source", str(tmp_path / "run.bragg")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == said
    assert main(["source", str(tmp_path / "run.bragg"), "--json"]) == 0
    first, second, third = json.loads(capsys.readouterr().out)["lines"]
    assert (first["backward"], third["backward"]) == ({"host_time": 5e6}, {"host_time": 9e3})
    assert "backward" not in second


def test_lines_around_one_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(f"x{number}\n" for number in range(1, 101))
    profile = replace(profile_from_text("root\n  a.py:50@f host=1ms"), sources={"a.py": text})
    formats.export(profile, "bragg", tmp_path / "run.bragg")
    assert main(["source", str(tmp_path / "run.bragg"), "a.py:50"]) == 0
    _, _, first, *_, last = capsys.readouterr().out.splitlines()
    assert (first.split(), last.split()) == (["38", "x38"], ["62", "x62"])
    assert main(["source", str(tmp_path / "run.bragg"), "a.py:101"]) == 2
    assert "a.py has 100 lines" in capsys.readouterr().err


def test_a_file_without_lines_or_a_run_without_times_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = replace(profile_from_text("root\n  a.py:1@f\n    k x2"), sources={"a.py": "f()", "b/__init__.py": ""})
    formats.export(profile, "bragg", tmp_path / "run.bragg")
    for words, lines in (
        (["a.py"], ["a.py  of the whole run: no times were recorded", "1  f()"]),
        (["__init__.py"], ["b/__init__.py  of the whole run: no times were recorded"]),
    ):
        assert main(["source", str(tmp_path / "run.bragg"), *words]) == 0
        assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["net.py"], "this profile has no text of net.py"),
        (["gemm"], "this kernel comes from a library, and this profile does not have its source"),
        (["--ir", "sass"], "this kernel comes from a library, and this profile does not have its SASS"),
    ],
)
def test_what_a_profile_does_not_have_is_an_error(
    program: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["source", str(program), *words]) in (2, 7)
    assert f"error: {says}" in capsys.readouterr().err


UNSEEN = Path(__file__).parents[3] / "golden/recordings/unseen"
SIDES = (
    str(UNSEEN / "h100-tone_histogram_fast.bragg"),
    "--before",
    str(UNSEEN / "h100-tone_histogram_slow.bragg"),
)


def test_a_kernel_stands_beside_that_of_another_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", *SIDES]) == 0
    title, time, compiled, _, function, *lines = capsys.readouterr().out.splitlines()
    assert title == "tone_kernel<BINS=64 BLOCK=4096 w4 s3 f32 i32>"
    assert time == "a launch: 2.63 ms before, 20.8 us after: -2.61 ms (-99.2 %)"
    assert compiled == (
        "compiled otherwise: registers 94 → 64, shared memory 8,192 B → 256 B, occupancy 31.2 % → 50.0 %"
    )
    assert function.startswith("tone_kernel  ")
    assert "    44         9  12 12        live = offs < n".strip() in lines[5].strip()
    assert lines[9] == "     498            16     -     tl.atomic_add(hist + bucket, 1, mask=live)  # here"
    assert lines[10] == "               967     16  +     local = tl.histogram(bucket, BINS, mask=live)"
    at = lines.index("instructions of the machine code, by name")
    assert lines[at + 2 : at + 4] == ["     792     1,200      +408  all", "      34       450      +416  LOP3.LUT"]
    assert lines[-1] == "21 more names with other counts: --json"


def test_a_kernel_beside_another_one_as_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", *SIDES, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["view"], values["instructions"], values["launches"]) == ("source", [792, 1200], [1000, 18900])
    assert values["opcodes"]["ATOMG.E.ADD.STRONG.GPU"] == [32, 1]
    assert {each["fact"] for each in values["compiled"]} == {"registers", "shared memory", "occupancy"}
    (section,) = values["sections"]
    assert section["lines"][-1] == {
        "before": None,
        "after": {
            "number": 17,
            "text": "    tl.atomic_add(hist + tl.arange(0, BINS), local)",
            "instructions": 20,
            "samples": 0,
        },
    }


def test_samples_of_both_sides_stand_beside_the_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "softmax", "--before", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "samples: 100, 75.0 % stalled, mostly memory: long_scoreboard" in lines[2]
    assert "       1         1    60.0 %    60.0 %   8  8        values = tl.load(x)" in lines


@pytest.mark.parametrize("option", [("--ir", "sass"), ("--remarks",)])
def test_only_sources_are_compared(option: tuple[str, ...], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["source", str(file), "--before", str(file), *option]) == 2
    assert "--before compares the source" in capsys.readouterr().err
