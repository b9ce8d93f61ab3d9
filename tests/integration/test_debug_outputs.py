"""What continuous integration gets of a check: files for other tools, a pre-commit hook, failing tests."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bragg.cli.annotations.carried import carry_findings
from bragg.formats import load
from bragg.model import Confidence
from tests.support.forked_bragg import forked_bragg

pytest.importorskip("triton")

KERNELS = """
import numpy as np
import pytest
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    values = tl.load(x + place, mask=place <= n, other=0.0)
    tl.store(out + place, values, mask=place < n)

@triton.jit
def fine(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)

@triton.jit
def adds(total):
    tl.atomic_add(total, 0.1)

@triton.jit
def waits(lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
"""
SCRIPT = "scale[(4,)](np.ones(30, 'f4'), np.zeros(30, 'f4'), 30, B=8)\nfine[(1,)](np.ones(30, 'f4'), B=16)\n"
TESTS = """
@pytest.fixture
def filled():
    x = np.ones(30, "f4")
    fine[(1,)](x, B=16)
    return x

def test_reads_too_far():
    scale[(4,)](np.ones(30, "f4"), np.zeros(30, "f4"), 30, B=8)

def test_reads_too_far_and_fails_itself():
    test_reads_too_far()
    assert False, "its own failure"

def test_fine(filled):
    assert filled.sum() == 30

def test_expects_a_deadlock():
    with pytest.raises(Exception, match="deadlock"):
        waits[(2,)](np.zeros(1, "i4"))

def test_adds_in_any_order():
    adds[(4,)](np.ones(1, "f4"))

def test_has_no_kernel():
    pass
"""


def bragg(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked_bragg(*arguments, directory=directory)


def pytest_run(directory: Path, *arguments: str, tests: str = TESTS) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(KERNELS + tests)
    command = [sys.executable, "-m", "pytest", "-p", "bragg.pytest_plugin", "--rootdir", ".", "-q", *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, check=False)


def test_a_file_for_others_stands_beside_the_text(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNELS + SCRIPT)
    done = bragg(tmp_path, "check", "-f", "sarif", "-o", "found.sarif", "script.py")
    assert done.returncode == 3
    assert "error: out-of-bounds in scale" in done.stdout
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "script.py"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 10
    again = bragg(tmp_path, "check", "-f", "sarif", "-o", "found.sarif", "script.py")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert bragg(tmp_path, "check", "-f", "junit", "-o", "found.sarif", "--force", "script.py").returncode == 3
    assert ElementTree.parse(tmp_path / "found.sarif").getroot().get("failures") == "1"


def test_findings_go_into_the_profile_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNELS + SCRIPT)
    bragg(tmp_path, "run", "-o", "run.bragg", "script.py")
    done = bragg(tmp_path, "check", "--into", "run.bragg", "script.py")
    assert done.returncode == 3
    assert (
        done.stderr.splitlines()[-1]
        == f"Added 1 finding to {tmp_path}/run.bragg. Next: bragg report {tmp_path}/run.bragg"
    )
    profile = load(tmp_path / "run.bragg")
    (carried,) = profile.carried
    assert (carried.rule, carried.line, carried.confidence) == ("out-of-bounds", 10, Confidence.PROVEN)
    assert carried.node is not None
    assert profile.tree.label(carried.node).startswith("scale")
    assert carried in profile.findings()
    assert [name for name, _ in carried.details] == ["where", "tensor", "address"]
    assert dict(carried.details)["tensor"] == "x (fp32[30], strides [1])"
    (tmp_path / "script.py").unlink()
    shown = bragg(tmp_path, "source", "run.bragg").stdout.splitlines()
    below = next(number for number, line in enumerate(shown) if "^ out-of-bounds" in line)
    assert "tl.load(x + place, mask=place <= n" in shown[below - 1]
    carry_findings(tmp_path / "run.bragg", [])
    assert load(tmp_path / "run.bragg").carried == []


def test_only_a_profile_gets_findings(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('was run')")
    (tmp_path / "trace.json").write_text("[]")
    done = bragg(tmp_path, "check", "--into", "trace.json", "script.py")
    assert (done.returncode, done.stdout) == (6, "")
    assert (tmp_path / "trace.json").read_text() == "[]"


def test_workflow_commands_are_on_stdout_and_the_summary_is_not(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNELS + SCRIPT)
    done = bragg(tmp_path, "check", "--format", "github", "script.py")
    (command,) = done.stdout.splitlines()
    assert command.startswith("::error file=script.py,line=10,title=out-of-bounds::scale: load outside of x")
    assert done.stderr.splitlines()[-1] == "1 error in 2 launches of 5 programs"


def test_a_program_without_launches_is_no_clean_document(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNELS)
    done = bragg(tmp_path, "check", "-f", "junit", "script.py")
    assert done.returncode == 7
    assert ElementTree.fromstring(done.stdout).get("errors") == "1"


@pytest.mark.parametrize(
    "options", [["-f", "pdf"], ["-o", "out.sarif"], ["--json", "-f", "sarif"]], ids=["unknown", "no format", "both"]
)
def test_options_that_make_no_sense_are_refused_before_the_program_runs(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "script.py").write_text("print('was run')")
    done = bragg(tmp_path, "check", *options, "script.py")
    assert (done.returncode, done.stdout) == (2, "")


def test_the_hook_of_pre_commit_checks_a_projects_tests(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert hook["pass_filenames"] is False
    (tmp_path / "test_it.py").write_text(KERNELS + TESTS.replace("def test_reads_too_far_and", "def no_test_and"))
    command, *arguments = shlex.split(hook["entry"])
    assert command == "bragg"
    done = bragg(tmp_path, *arguments, *hook["args"], "-q", "-p", "no:cacheprovider")
    assert done.returncode == 3, done.stderr
    assert "error: out-of-bounds in scale" in done.stdout


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "xdist"])
def test_a_wrong_kernel_fails_its_test_with_the_finding(tmp_path: Path, workers: list[str]) -> None:
    done = pytest_run(tmp_path, "--bragg-check", *workers)
    assert "2 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    failed = done.stdout.partition("_ test_reads_too_far _")[2]
    assert f"error: out-of-bounds in scale ({tmp_path}/test_it.py:10)" in failed
    assert "fix: The mask place <= n lets these lanes through" in failed
    own = done.stdout.partition("_ test_reads_too_far_and_fails_itself _")[2]
    assert "its own failure" in own
    assert "Captured bragg check call" in own
    assert "3 findings in 5 launches of 15 programs, by 5 tests" in done.stdout


ADVISED = """
@triton.jit
def clears(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, 0.0, mask=(i < 4) and (i > 1))

def test_uses_what_triton_deprecates():
    clears[(1,)](np.ones(8, "f4"), N=8)
"""


IN_PROCESSES = """
import os, subprocess, sys, textwrap

SCRIPT = textwrap.dedent(KERNELS) + "scale[(4,)](np.ones(30, 'f4'), np.zeros(30, 'f4'), 30, B=8)"

def test_in_a_child(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    subprocess.run([sys.executable, tmp_path / "script.py"], check=True)

def test_in_a_fork():
    if (pid := os.fork()) == 0:
        scale[(4,)](np.ones(30, "f4"), np.zeros(30, "f4"), 30, B=8)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def test_fine():
    fine[(1,)](np.ones(16, "f4"), B=16)
"""


def test_processes_that_a_test_starts_are_checked_too(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", tests=f"KERNELS = {KERNELS!r}\n{IN_PROCESSES}")
    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    for name in ("test_in_a_child", "test_in_a_fork"):
        assert "error: out-of-bounds in scale" in done.stdout.partition(f"_ {name} _")[2].partition("\n_")[0]
    assert "2 findings in 3 launches of 9 programs, by 3 tests" in done.stdout


def test_launches_of_a_module_that_is_imported_are_executed_and_checked(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS + "x = np.zeros(16, 'f4')\nfine[(1,)](x, B=16)\n")
    right = "from kernels import *\ndef test_ran():\n    assert x.sum() == 16\n"
    done = pytest_run(tmp_path, "--bragg-check", tests=right)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    done = pytest_run(tmp_path, "--bragg-check", tests=SCRIPT + right)
    assert done.returncode == 2, done.stdout
    told = done.stdout.partition("ERROR collecting test_it.py")[2]
    assert "error: out-of-bounds in scale" in told


def test_advice_is_a_warning_of_a_test_that_passes(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", tests=ADVISED)
    assert "1 passed, 1 warning" in done.stdout, done.stdout
    assert "note: portability in clears" in done.stdout


SHORT = """
def test_grid_is_short():
    out = np.empty(30, "f4")
    copies[(3,)](np.ones(30, "f4"), out, 30, B=8)
    assert out[0] == 1

@triton.jit
def copies(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
"""


def test_a_result_that_is_written_in_part_fails_its_test(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", tests=SHORT)
    assert "6 of 30 elements of out are written by nobody" in done.stdout, done.stdout
    assert "1 warning in 1 launch" in done.stdout or "1 finding in 1 launch" in done.stdout
    assert (done.returncode, "1 failed" in done.stdout) == (1, True)


OVERRUN = """
@triton.jit
def writes_rows(out, stride, B: tl.constexpr):
    tl.store(out + tl.program_id(0) * stride + tl.arange(0, B), tl.program_id(0) * 1.0)

def test_rows():
    writes_rows[(4,)](np.zeros((4, 100), "f4"), 100, B=128)
"""


def test_the_summary_counts_the_findings_that_tests_show(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", tests=OVERRUN)
    assert "  2 more may follow from it" in done.stdout, done.stdout
    assert "1 finding (2 more may follow) in 1 launch of 4 programs, by 1 test" in done.stdout


def test_a_checker_may_be_left_out_or_added(tmp_path: Path) -> None:
    options = ["--bragg-check", "-k", "any_order", "--bragg-add", "atomic-order"]
    assert "1 failed" in pytest_run(tmp_path, *options).stdout
    assert "1 passed" in pytest_run(tmp_path, *options, "--bragg-without", "atomic-order").stdout
    unknown = pytest_run(tmp_path, "--bragg-check", "--bragg-add", "bounds")
    assert (unknown.returncode, "unknown checker 'bounds'" in unknown.stderr) == (4, True)


MARKED = """
@pytest.mark.bragg_without("out-of-bounds")
def test_means_to_read_too_far():
    scale[(4,)](np.ones(30, "f4"), np.zeros(30, "f4"), 30, B=8)

@pytest.mark.bragg_without("data-race")
def test_means_something_else():
    test_means_to_read_too_far()

@pytest.mark.bragg_without("bounds")
def test_leaves_out_what_there_is_not():
    fine[(1,)](np.ones(30, "f4"), B=16)
"""


def test_a_mark_leaves_a_checker_out_of_one_test(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", "--strict-markers", tests=MARKED)
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "1 finding in 2 launches of 8 programs, by 2 tests" in done.stdout
    assert "error: out-of-bounds in scale" in done.stdout.partition("_ test_means_something_else _")[2]
    assert "unknown checker 'bounds'" in done.stdout


def test_tests_without_kernels_are_not_called_clean(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, "--bragg-check", "-k", "no_kernel")
    assert "nothing was checked: no test launched a Triton kernel" in done.stdout
    assert pytest_run(tmp_path, "--bragg-check", "--bragg").returncode == 4
