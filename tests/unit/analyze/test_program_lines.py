"""Files of a program with the times of their lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.program_lines import ProgramLine, program_file, program_files
from bragg.errors import UsageError
from bragg.model import Profile
from tests.support.profiles import profile_from_text

SOURCES = {
    "/w/net.py": "def f(n):\n    f(n - 1)\n    k()\n",
    "/w/train.py": "import net\nnet.f(3)\n",
    "f/abc.ttir": "module",
}


@pytest.fixture
def profile() -> Profile:
    tree = """
root
  /w/train.py:1@<module> host=1ms
    /site-packages/torch.py:1@<module> host=5ms
  /w/train.py:2@<module> host=1ms
    /w/net.py:2@f host=2ms
      /w/net.py:2@f host=3ms
        /w/net.py:3@f host=1ms
          kernel 9us
    /w/net.py:3@f
      kernel 1us"""
    return replace(profile_from_text(tree), sources=dict(SOURCES))


def test_a_line_has_the_time_of_all_that_it_calls_once(profile: Profile) -> None:
    found = program_file(profile, "net.py")
    assert found is not None
    assert found.file == "/w/net.py"
    assert found.totals_ns == {"host_time": 13e6, "gpu_time": 10e3}
    assert found.lines == [
        ProgramLine(1, "def f(n):", {}),
        ProgramLine(2, "    f(n - 1)", {"host_time": 6e6, "gpu_time": 9e3}),
        ProgramLine(3, "    k()", {"host_time": 1e6, "gpu_time": 10e3}),
    ]


def test_the_main_file_is_first_and_texts_of_kernels_are_none(profile: Profile) -> None:
    assert program_files(profile) == ["/w/train.py", "/w/net.py"]
    assert program_files(replace(profile, sources={})) == []


@pytest.mark.parametrize(("wanted", "file"), [("w/net.py", "/w/net.py"), ("/w/net.py", "/w/net.py"), ("matmul", None)])
def test_the_end_of_a_path_means_a_file(profile: Profile, wanted: str, file: str | None) -> None:
    found = program_file(profile, wanted)
    assert (found and found.file) == file


def test_a_file_that_is_not_kept_is_an_error_that_names_others(profile: Profile) -> None:
    with pytest.raises(UsageError, match=r"no text of et\.py") as error:
        program_file(profile, "et.py")
    assert error.value.hint == "It has: /w/train.py, /w/net.py"
    with pytest.raises(UsageError, match=r"no text of net\.py") as error:
        program_file(replace(profile, sources={}), "net.py")
    assert "--no-kernel-code" in error.value.hint


BACKWARD = """
root
  /w/train.py:3@<module>
    /w/train.py:1@step host=1ms
      aten::mm #operator host=2ms
        [backward] #state
          MmBackward0 #operator host=5ms
            gemm 3us
    /w/train.py:2@step
      /site-packages/torch/_tensor.py:9@Tensor.backward host=4ms"""
TRAIN = {"/w/train.py": "loss = x @ w\nloss.backward()\nstep()\n"}


def test_a_line_tells_what_of_it_is_the_backward_pass_that_another_line_runs() -> None:
    found = program_file(replace(profile_from_text(BACKWARD), sources=TRAIN), "train.py")
    assert found is not None
    assert [line.times_ns["host_time"] for line in found.lines] == [8e6, 4e6, 12e6]
    backward = {"host_time": 5e6, "gpu_time": 3e3}
    assert [line.backward_ns for line in found.lines] == [backward, {}, {}]


def test_without_a_call_of_backward_it_is_not_known_which_line_runs_it() -> None:
    text = BACKWARD.replace("Tensor.backward", "Tensor.item")
    found = program_file(replace(profile_from_text(text), sources=TRAIN), "train.py")
    assert found is not None
    assert [line.backward_ns for line in found.lines] == [{}, {}, {}]
