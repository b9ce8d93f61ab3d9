"""`bragg run --as-proton`, and the command line of Proton."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import bragg
from bragg.record.hooks.alias import PROTON
from tests.support import fake_cuda
from tests.support.proton_runs import GPU, outline, run_program
from tests.support.runs import entered

AS_PROTON = (sys.executable, "-m", "bragg", "run", "--as-proton", "--no-summary", "-o", "run.bragg", "--backend", "cpu")
CLI = (sys.executable, "-m", "bragg.proton", "-n", "x", "-b", "cpu")


def test_triton_s_profiler_is_the_drop_in_under_all_its_names(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    done = run_program(
        tmp_path,
        """
        import sys
        import triton.profiler as proton
        import triton.profiler.scope, triton.profiler.hooks.launch
        from triton.profiler import viewer, language
        from triton.profiler.hooks.hook import HookManager
        from triton._C.libproton import proton as libproton
        import triton._C.libproton.proton as again
        import bragg.proton
        assert proton is bragg.proton and libproton is again is bragg.proton.libproton
        assert triton.profiler.scope is bragg.proton.scope is triton.profiler.scope
        assert HookManager is bragg.proton.hooks.HookManager
        assert proton.__spec__.name == "bragg.proton"
        names = {name: module for name, module in sys.modules.items() if name.startswith("triton.profiler")}
        assert all(module.__name__.startswith("bragg.proton") for module in names.values()), names
        assert not any("libproton.so" in line for line in open("/proc/self/maps"))
        """,
        command=AS_PROTON,
    )
    assert (done.exit_code, done.output) == (0, ""), done.errors


def test_script_s_own_sessions_are_written_and_the_run_s_profile_too(tmp_path: Path) -> None:
    done = run_program(
        tmp_path,
        """
        import bragg.proton as proton
        with proton.scope("before"): pass
        proton.start("x", backend="cpu")
        with proton.scope("inside", {"n": 1}): pass
        proton.finalize()
        with proton.scope("after"): pass
        """,
        command=AS_PROTON,
    )
    assert done.exit_code == 0, done.errors
    assert outline(done.tree()) == ["ROOT n=0", "  inside n=1"]
    profile = bragg.load(tmp_path / "run.bragg")
    assert [entered(profile, name) for name in ("before", "inside", "after")] == [1, 1, 1]


def test_child_processes_get_the_drop_in_too(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    done = run_program(
        tmp_path,
        """
        import subprocess, sys
        code = "import triton.profiler as p; p.start('child', backend='cpu'); p.finalize(); print(p.__name__)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
        """,
        command=AS_PROTON,
    )
    assert (done.exit_code, done.output) == (0, "bragg.proton\n"), done.errors
    assert (tmp_path / "child.hatchet").is_file()


def test_command_of_triton_s_profiler_is_the_drop_in_s(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    program = "import triton.profiler as proton\nwith proton.scope('a', {'n': 1}): pass"
    command = (*AS_PROTON, "-m", "triton.profiler.proton", "-n", "x", "-b", "cpu")
    done = run_program(tmp_path, program, command=command)
    assert done.exit_code == 0, done.errors
    assert outline(done.tree()) == ["ROOT n=0", "  a n=1"]


def test_without_the_option_triton_s_profiler_is_its_own(tmp_path: Path) -> None:
    triton = pytest.importorskip("triton")
    command = tuple(word for word in AS_PROTON if word != "--as-proton")
    program = "import importlib.util; print(importlib.util.find_spec('triton.profiler').origin)"
    done = run_program(tmp_path, program, command=command)
    assert done.output.strip() == str(Path(triton.__file__).parent / "profiler" / "__init__.py")


def test_every_alias_names_a_module() -> None:
    from importlib.util import find_spec

    assert all(find_spec(name) is not None for name in PROTON.values())


class TestCommandLine:
    PROGRAM = """
        import sys
        import bragg.proton as proton
        assert __name__ == "__main__"
        assert proton.start("ignored") is None
        with proton.scope("a", {"n": len(sys.argv)}): pass
        try:
            proton.finalize(1)
        except ValueError as error:
            print(error)
    """

    def test_script_is_recorded_and_its_own_sessions_are_left_out(self, tmp_path: Path) -> None:
        done = run_program(tmp_path, self.PROGRAM, command=CLI)
        assert (done.exit_code, done.errors) == (0, "")
        assert done.output == "Only one session can be finalized when running from the command line.\n"
        assert outline(done.tree()) == ["ROOT n=0", "  a n=1"]
        assert done.files() == {"x.hatchet"}

    def test_script_that_finalizes_does_not_end_the_session_of_the_command(self, tmp_path: Path) -> None:
        program = "import bragg.proton as p\np.finalize()\nwith p.scope('late', {'n': 1}): pass"
        assert outline(run_program(tmp_path, program, command=CLI).tree()) == ["ROOT n=0", "  late n=1"]

    @pytest.mark.parametrize(
        ("ending", "code", "message"),
        [("raise KeyError('why')", 1, "KeyError: 'why'"), ("raise SystemExit(7)", 7, ""), ("exit('text')", 1, "text")],
    )
    def test_failing_script_leaves_its_profile_and_its_exit_code(
        self, tmp_path: Path, ending: str, code: int, message: str
    ) -> None:
        program = f"import bragg.proton as p\nwith p.scope('a', {{'n': 1}}):\n    {ending}"
        done = run_program(tmp_path, program, command=CLI)
        assert (done.exit_code, outline(done.tree())) == (code, ["ROOT n=0", "  a n=1"])
        assert message in done.errors

    def test_pytest_is_recorded(self, tmp_path: Path) -> None:
        (tmp_path / "test_it.py").write_text(
            "import bragg.proton as p\ndef test_it():\n    with p.scope('tested', {'n': 1}): pass\n"
        )
        command = (*CLI, "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_it.py", "--ignore")
        done = run_program(tmp_path, "", command=command)
        assert done.exit_code == 0, done.output
        assert outline(done.tree()) == ["ROOT n=0", "  tested n=1"]

    def test_module_is_recorded(self, tmp_path: Path) -> None:
        (tmp_path / "module.py").write_text(
            "import sys, bragg.proton as p\nwith p.scope(sys.argv[1][-10:], {'n': 1}): pass\n"
        )
        done = run_program(tmp_path, "", command=(*CLI, "--", "-m", "module"))
        assert outline(done.tree()) == ["ROOT n=0", "  program.py n=1"], done.errors

    def test_trace_and_hook_are_options(self, tmp_path: Path) -> None:
        done = run_program(tmp_path, self.PROGRAM, command=(*CLI, "-d", "trace", "-k", "triton", "-c", "python"))
        assert json.loads((tmp_path / "x.chrome_trace").read_text())["displayTimeUnit"] == "us", done.errors

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("-m", "pcsampling"), "proton: CpuProfiler: unsupported mode: pcsampling"),
            (
                ("-b", "instrumentation"),
                "proton: profiler 'instrumentation': ",
            ),
            (("-c", "java"), "invalid choice: 'java'"),
            (("missing.py",), "proton: missing.py: there is no such file"),
        ],
    )
    def test_what_cannot_be_done_is_said(self, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
        done = run_program(tmp_path, self.PROGRAM, command=(*CLI, *options))
        assert done.exit_code != 0
        assert message in done.errors
        assert done.files() == set()


def test_kernels_of_a_run_are_in_the_script_s_profile_and_the_run_s(tmp_path: Path, fakes_directory: Path) -> None:
    program = GPU + "proton.start('x')\nwith proton.scope('a'): gpu.launch_many('k', 7)\nproton.finalize()"
    command = tuple("cuda" if word == "cpu" else word for word in AS_PROTON)
    done = run_program(tmp_path, program, command=command, environ=fake_cuda.environment(fakes_directory))
    assert done.exit_code == 0, done.errors
    assert outline(done.tree()) == ["ROOT count=0", "  a", "    k count=7"]
    assert bragg.load(tmp_path / "run.bragg").total("gpu_count") == 7


def test_program_under_the_command_line_imports_the_drop_in_by_triton_s_name(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    done = run_program(
        tmp_path,
        """
        import triton.profiler as proton
        assert proton.start("other") is None
        with proton.scope("s", {"m": 1}): pass
        proton.finalize()
        """,
        command=CLI,
    )
    assert (done.exit_code, done.files()) == (0, {"x.hatchet"}), done.errors
    assert outline(done.tree()) == ["ROOT m=0", "  s m=1"]
