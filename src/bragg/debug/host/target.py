"""Runs the program that is to be checked, in this process, on a machine that may have no GPU."""

from __future__ import annotations

import difflib
import importlib.util
import re
import runpy
import shlex
import sys
import traceback
from bdb import BdbQuit
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bragg.debug.host.compiled_lines import remember_lines, trace_lines
from bragg.debug.host.driver import has_gpu, use_host_driver
from bragg.debug.host.imports import on_import
from bragg.debug.host.pytorch.on_cpu import compile_with_triton, use_cpu_for_cuda
from bragg.debug.targets import Target
from bragg.errors import BraggError, TritonMissing, UsageError

# What PyTorch's allocator and numpy say when the system gives them no memory.
_ASKED = re.compile(r"you tried to allocate (\d+) bytes|Unable to allocate ([\d.]+ [KMGTPE]iB)")


_NO_SCRIPTS = {".bragg": "profile", ".part": "capture", ".ipynb": "notebook"}


def run_program(arguments: Sequence[str], *, is_module: bool = False) -> int:
    """Run a script or module as `python` would.

    Args:
        arguments: Script or module, and its arguments.
        is_module: The first one is a module.

    Returns:
        Its exit code; 1 after an exception, whose traceback is printed.

    Raises:
        UsageError: There is no such script or module.
        BraggError: An error of bragg's own inside of the program.
    """
    if not arguments:
        raise UsageError("no program to run", hint="Name it behind the options: kernel.py, or -m module")
    name = arguments[0]
    if is_module or name == "pytest":
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"there is no module {name!r}")
        run: Callable[[], Any] = lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)  # noqa: E731
        place = str(Path.cwd())
    else:
        if not Path(name).is_file():
            raise UsageError(f"there is no script {name!r}", hint=_how_to_name_it(arguments))
        if (kind := _NO_SCRIPTS.get(Path(name).suffix)) is not None:
            raise UsageError(f"{name} is a {kind}, not a script", hint="Give the script that launches the kernels")
        run = lambda: runpy.run_path(name, run_name="__main__")  # noqa: E731
        place = str(Path(name).resolve().parent)
    with _command_line([name, *arguments[1:]], place):
        return _exit_code(run)


def _how_to_name_it(arguments: Sequence[str]) -> str:
    """What else a script that is not there may be meant to be."""
    path = Path(arguments[0])
    if re.fullmatch(r"python[\d.]*", path.name) and len(arguments) > 1:
        return f"The script stands alone: {shlex.join(arguments[1:])}"
    files = [each.name for each in path.parent.glob("*.py")]
    near = difflib.get_close_matches(path.name, files, n=1)
    return f"Did you mean {path.with_name(near[0])}?" if near else "A module is run with -m"


@contextmanager
def _command_line(argv: list[str], place: str) -> Iterator[None]:
    before, path = sys.argv, sys.path[:]
    sys.argv = argv
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before, path


def _exit_code(run: Callable[[], Any]) -> int:
    try:
        run()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BraggError:
        raise
    except BdbQuit:
        print("the program ended where its debugger was quit; what comes after that was not executed", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - the program is the author's code
        if asked := _refused_memory(error):
            _print_refusal(error, asked)
        else:
            _print_traceback(error)
        return 1
    return 0


def _refused_memory(error: Exception) -> str:
    """How much memory PyTorch or numpy asked for and did not get; empty: that is not what happened."""
    asked = _ASKED.search(str(error)) if isinstance(error, (MemoryError, RuntimeError)) else None
    if asked is None:
        return ""
    return f"{int(asked[1]) / 1e9:,.1f} GB" if asked[1] else asked[2]


def _print_refusal(error: BaseException, asked: str) -> None:
    """One line instead of a traceback that ends in an allocator's words."""
    place = next((f"{frame.filename}:{frame.lineno}: " for frame in reversed(_own_frames(error))), "")
    print(
        f"{place}{asked} do not fit into this machine's memory, where tensors of a GPU are while a program is checked: "
        "check with smaller sizes",
        file=sys.stderr,
    )


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The program's frames, the outermost first."""
    own = str(Path(__file__).parents[2])
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((own, "<frozen runpy>"))
    ]


def _print_traceback(error: BaseException) -> None:
    """The traceback from the program's first line on."""
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(_own_frames(error))]
    print("".join([*lines, *traceback.format_exception_only(type(error), error)]), end="", file=sys.stderr)


@contextmanager
def host_without_gpu(target: Target) -> Iterator[None]:
    """Let scripts that are written for a GPU run where there is none.

    Triton's driver answers for the CPU, and PyTorch puts tensors there that are asked for on `cuda`.

    Args:
        target: The GPU that the driver answers as.

    Raises:
        TritonMissing: It is not installed.
    """
    try:
        import triton.runtime  # noqa: F401
    except ImportError as error:
        raise TritonMissing from error
    with ExitStack() as stack:
        stack.enter_context(on_import("torch", use_cpu_for_cuda))
        stack.enter_context(on_import("torch._inductor.config", trace_lines))
        stack.enter_context(on_import("torch._inductor.output_code", remember_lines))
        if not has_gpu():
            use_host_driver(target)
            stack.enter_context(on_import("torch._inductor.config", compile_with_triton))
        yield
