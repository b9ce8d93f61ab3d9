"""Runs the program that is to be checked, in this process, on a machine that may have no GPU."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bragg.debug.host_torch import use_cpu_for_cuda
from bragg.debug.imports import on_import
from bragg.errors import BraggError, UsageError

__all__ = ["host_without_gpu", "run_program"]


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
        raise UsageError("no program to run", hint="bragg check script.py args…")
    name = arguments[0]
    if is_module or name == "pytest":
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"there is no module {name!r}")
        run: Callable[[], Any] = lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)  # noqa: E731
        place = str(Path.cwd())
    else:
        if not Path(name).is_file():
            raise UsageError(f"there is no script {name!r}", hint="A module is run with -m")
        run = lambda: runpy.run_path(name, run_name="__main__")  # noqa: E731
        place = str(Path(name).resolve().parent)
    with _command_line([name, *arguments[1:]], place):
        return _exit_code(run)


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
    except Exception as error:  # noqa: BLE001 - the program is the author's code
        _print_traceback(error)
        return 1
    return 0


def _print_traceback(error: BaseException) -> None:
    """The traceback from the program's first line on."""
    own = str(Path(__file__).parents[1])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((own, "<frozen runpy>"))
    ]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)]
    print("".join([*lines, *traceback.format_exception_only(type(error), error)]), end="", file=sys.stderr)


_GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


class HostDriver:
    """What scripts ask Triton's driver where there is no GPU: tensors live on the CPU."""

    def get_active_torch_device(self) -> Any:
        """The CPU."""
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default one."""
        return 0

    def get_current_target(self) -> Any:
        """A Hopper GPU: scripts choose their configurations by it."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Runs a kernel once; all configurations are equally fast."""

        def once(call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_options: Any) -> list[float]:
            call()
            return [1.0] * len(quantiles)

        return once


@contextmanager
def host_without_gpu() -> Iterator[None]:
    """Let scripts that are written for a GPU run where there is none.

    Triton's driver answers for the CPU, and PyTorch puts tensors there that are asked for on `cuda`.

    Raises:
        UsageError: Triton is not installed.
    """
    try:
        from triton.runtime import driver
    except ImportError as error:
        raise UsageError("Triton is not installed", hint="pip install triton") from error
    # Triton's own search for a GPU imports PyTorch: seconds.
    if not any(Path(device).exists() for device in _GPU_DEVICES):
        driver.set_active(HostDriver())
    with on_import("torch", use_cpu_for_cuda):
        yield
