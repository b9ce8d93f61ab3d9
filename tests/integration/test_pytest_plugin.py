"""The plugin of pytest, in runs of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import bragg
from bragg.pytest_plugin import profile_name
from tests.support.fake_cuda import environment
from tests.support.runs import entered

SUPPORT = Path(__file__).parents[1] / "support"
Run = Callable[..., subprocess.CompletedProcess[str]]
TESTS = """
import time
import bragg
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_scoped(n):
    with bragg.scope(f"body {n}"):
        time.sleep(0.002)

class TestGroup:
    def test_failing(self):
        with bragg.scope("before the failure"):
            pass
        assert False, "its own failure"
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest on a test file, with this plugin and no other but those named."""

    def run_pytest(
        source: str, *arguments: str, variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(textwrap.dedent(source))
        command = [sys.executable, "-m", "pytest", "-p", "bragg.pytest_plugin", "--rootdir", ".", "-q", *arguments]
        environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(variables or {})}
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run_pytest


def profiles(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_nothing_is_recorded_unless_asked_for(run: Run, tmp_path: Path) -> None:
    done = run(TESTS)
    assert "2 passed" in done.stdout
    assert "bragg" not in done.stdout.replace("with bragg.scope", "").replace("bragg.pytest", "")
    assert not (tmp_path / "bragg-results").exists()


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "xdist"])
def test_each_test_has_a_profile_and_a_line(run: Run, tmp_path: Path, workers: list[str]) -> None:
    done = run(TESTS, "--bragg", *workers)
    assert "1 failed, 2 passed" in done.stdout
    results = tmp_path / "bragg-results" / "test_it.py"
    assert profiles(results) == {"test_scoped[1].bragg", "test_scoped[2].bragg", "TestGroup.test_failing.bragg"}
    assert entered(bragg.load(results / "test_scoped[1].bragg"), "body 1") == 1
    assert entered(bragg.load(results / "test_scoped[1].bragg"), "body 2") == 0
    assert entered(bragg.load(results / "TestGroup.test_failing.bragg"), "before the failure") == 1
    summary = done.stdout.split(" bragg ", 1)[1]
    assert "ms host" in summary
    assert all(f"test_it.py::{name}" in summary for name in ("test_scoped[1]", "test_scoped[2]"))
    hottest = profile_name(re.findall(r"test_it\.py::\S+", summary)[0])
    assert f"Next: bragg view 'bragg-results/{hottest}'\n" in summary


def test_kernels_are_counted_and_tests_ordered_by_gpu_time(run: Run, tmp_path: Path, fakes_directory: Path) -> None:
    source = """
        from fake_cuda import FakeCuda
        cuda = FakeCuda()
        cuda.set_kernel_ns("k", 1_000_000)
        def test_short():
            cuda.launch("k")
        def test_long():
            cuda.launch_many("k", 7)
            cuda.set_memory(64)
        def test_host():
            pass
        """
    variables = {**environment(fakes_directory), "PYTHONPATH": str(SUPPORT), "CUDA_VISIBLE_DEVICES": "0"}
    done = run(source, "--bragg", "--bragg-dir", "out", "--bragg-lines", "2", variables=variables)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.split(" bragg ", 1)[1].splitlines()[1:]
    assert [line.split()[1:] for line in lines[:2]] == [
        ["ms", "GPU", "7", "kernels", "test_it.py::test_long"],
        ["ms", "GPU", "1", "kernel", "test_it.py::test_short"],
    ]
    assert float(lines[0].split()[0]) == pytest.approx(7, abs=0.2)
    assert bragg.load(tmp_path / "out" / "test_it.py" / "test_long.bragg").total("gpu_count") == 8


def test_kernels_for_a_gpu_are_executed_and_recorded_where_there_is_none(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    done = run(
        """
        import torch, triton, triton.language as tl

        @triton.jit
        def double(x, B: tl.constexpr):
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(x + i, tl.load(x + i) * 2)

        def test_double():
            x = torch.ones(64, device="cuda")
            double[(2,)](x, B=32)
            assert x.is_cuda and (x == 2).all()
        """,
        "--bragg",
        variables={"CUDA_VISIBLE_DEVICES": ""},
    )
    assert "1 passed" in done.stdout, done.stdout
    profile = bragg.load(tmp_path / "bragg-results/test_it.py/test_double.bragg")
    frames = profile.tree.frames
    assert "double" in {frames.name[frame].partition("<")[0] for frame in profile.tree.frame}


@pytest.mark.parametrize(("sure", "outcome"), [("heuristic", "1 failed, 1 passed"), ("proven", "2 passed")])
def test_a_finding_fails_its_test_where_that_is_wanted(run: Run, sure: str, outcome: str) -> None:
    source = """
        import time
        import bragg
        def test_again():
            for _ in range(3):
                with bragg.scope("[compile] jit_step"):
                    time.sleep(0.02)
        def test_once():
            with bragg.scope("[compile] jit_step"):
                time.sleep(0.02)
        """
    assert "2 passed" in run(source, "--bragg").stdout
    done = run(source, "--bragg", "--bragg-fail-on", sure)
    assert outcome in done.stdout
    # Why it was compiled again is not known, so nothing is proven.
    assert ("recompilation" in done.stdout) == (sure == "heuristic")


def test_a_recording_that_fails_fails_no_test(run: Run, tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where the directory should be")
    done = run(TESTS, "--bragg", "--bragg-dir", "blocked")
    assert "1 failed, 2 passed" in done.stdout
    assert done.stdout.count("not recorded: test_it.py::") == 3


def test_a_second_run_replaces_the_profiles_of_the_first(run: Run, tmp_path: Path) -> None:
    run(TESTS, "--bragg")
    run(TESTS, "--bragg")
    assert len(profiles(tmp_path / "bragg-results")) == 3


def test_warnings_as_errors_do_not_reach_tests(run: Run) -> None:
    assert "1 failed, 2 passed" in run(TESTS, "--bragg", "-W", "error").stdout


def test_a_package_that_is_loaded_before_pytest_is_no_warning(run: Run) -> None:
    source = """
        import bragg
        import pytest
        def test_it():
            pytest.register_assert_rewrite("bragg")  # as pytest does for the packages of all its plugins
        """
    assert "1 passed" in run(source, "-W", "error").stdout


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_a.py::test_b", "tests/test_a.py/test_b.bragg"),
        ("test_a.py::TestC::test_d[1-x=2]", "test_a.py/TestC.test_d[1-x=2].bragg"),
        ("../other/test_a.py::test_b", "other/test_a.py/test_b.bragg"),
        ("test_a.py::test_e[a/b]", "test_a.py/test_e[a_b]-bf188fe2.bragg"),
    ],
)
def test_profiles_are_named_after_their_tests(nodeid: str, name: str) -> None:
    assert str(profile_name(nodeid)) == name


def test_names_that_had_to_change_stay_apart() -> None:
    names = [profile_name(f"t.py::test[{value}]") for value in ("a/b", "a:b", "a_b", "x" * 300, "x" * 301)]
    assert len(set(names)) == len(names)
    assert max(len(name.name) for name in names) < 150
