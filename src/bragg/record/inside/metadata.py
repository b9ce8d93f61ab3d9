"""Facts about a recorded process: what was run, where, and with which versions."""

from __future__ import annotations

import os
import sys
import time

import bragg
from bragg.core import core
from bragg.record.inside.notes import guarded
from bragg.record.inside.rank import boot_id, find_place, find_rank, observed_place
from bragg.record.inside.redaction import without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


# What changes the speed of a program from outside. The rest of the environment stays private.
_ENVIRONMENT = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TRITON_INTERPRET",
    "XLA_FLAGS",
)
_FRAMEWORKS = ("torch", "triton", "jax", "numpy")
# What CUDA calls errors that end a kernel, in the words of frameworks too.
_KERNEL_ERRORS = (
    "an illegal memory access was encountered",
    "an illegal instruction was encountered",
    "device-side assert triggered",
    "invalid program counter",
    "misaligned address",
    "operation not supported on global/shared address space",
    "unspecified launch failure",
)


_interpreted_launches = 0
_interpreted_faults: type[BaseException] | tuple[()] = ()
_told: dict[str, str] = {}
_asked: dict[str, Callable[[bool], object]] = {}


def tell(key: str, value: str) -> None:
    """Put something that a hook has found into the meta of what stops from now on."""
    _told[key] = value


def tell_at_stop(key: str, function: Callable[[bool], object]) -> None:
    """Put what a function returns, unless it is empty, into the meta of what stops from now on.

    Args:
        key: Of the meta.
        function: Called with whether the program ends, rather than a phase.
    """
    _asked[key] = function


def told(key: str) -> str:
    """Facts that a hook has noted; empty if none has."""
    return _told.get(key, "")


def count_interpreted_launch() -> int:
    """A kernel is executed by an interpreter instead of on a GPU; returns how many were, with this one."""
    global _interpreted_launches
    _interpreted_launches += 1
    return _interpreted_launches


def call_kernel_error(fault: type[BaseException]) -> None:
    """What an interpreter of kernels raises counts as the error of a kernel, if it ends the program."""
    global _interpreted_faults
    _interpreted_faults = fault


def at_start(backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that are known when a recording starts.

    Args:
        backend: What measures.
        options: What to record, as `RecordConfig.options` lists it.
    """
    rank, ranks = find_rank(os.environ) or (None, None)
    machine = os.uname()
    return {
        "backend": backend,
        "boot": boot_id(),
        "bragg": bragg.__version__,
        "command": without_secrets(sys.orig_argv),
        "context": options["context"],
        "cwd": os.getcwd(),  # noqa: PTH109 (`pathlib` would add 10 ms to the start of every recorded process)
        "data": options["data"],
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        "executable": sys.executable,
        "folds_idle": not options["no_idle"],
        "host": machine.nodename,
        "keeps_kernel_code": options["kernel_code"],
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "platform": f"{machine.sysname} {machine.release} {machine.machine}",
        "python": sys.version.split()[0],
        "recorder_directory": os.path.dirname(bragg.__file__),  # noqa: PTH120 (as above)
        "rank": rank,
        "ranks": ranks,
        **({"job": place} if (place := find_place(os.environ)) else {}),
        **({"program_ran_before_ns": ran_ns} if (ran_ns := guarded(_program_ran_ns)()) else {}),
        **({"scheduled_before": scheduled} if (scheduled := guarded(_scheduled)()) else {}),
        **({"threads_before": threads} if (threads := core.sampled_threads()) else {}),
        "started_ns": core.now_ns(),
    }


def _scheduled() -> list[int]:
    """How long the main thread has run, and how long it was ready but had no core, ns; empty: not known."""
    try:
        with open("/proc/self/schedstat", "rb") as file:  # noqa: PTH123 (as above)
            return [int(word) for word in file.read().split()[:2]]
    except OSError:
        return []


def _program_ran_ns() -> int:
    """How long the program's threads ran, and processes that it waited for, ns; 0: processes of it still run."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        times = os.times()
        return time.process_time_ns() + int((times.children_user + times.children_system) * 1e9)
    return 0


def at_stop(*, is_end: bool = True) -> dict[str, Any]:
    """Facts that are known when it stops: versions of frameworks, compiled and interpreted kernels, notes of hooks.

    Args:
        is_end: The recording ends, rather than a phase of it.
    """
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in _FRAMEWORKS}
    return {
        "stopped_ns": core.now_ns(),
        "versions": {name: str(version) for name, version in versions.items() if version is not None},
        **({"program_ran_ns": ran_ns} if (ran_ns := guarded(_program_ran_ns)()) else {}),
        **({"scheduled": scheduled} if (scheduled := guarded(_scheduled)()) else {}),
        **({"threads": threads} if (threads := core.sampled_threads()) else {}),
        **({"compiled_regions": regions} if (regions := guarded(_compiled_regions)()) else {}),
        **({"interpreted_launches": _interpreted_launches} if _interpreted_launches else {}),
        **({"kernel_error": said} if is_end and (said := guarded(_kernel_error)()) else {}),
        **(guarded(observed_place)(os.environ) or {}),
        **_told,
        **{key: found for key, function in _asked.items() if (found := guarded(function)(is_end))},
    }


def _kernel_error() -> str:
    """What CUDA or an interpreter says of the kernel whose error ended the program; empty: none did."""
    for error in _chain(getattr(sys, "last_value", None)):
        text = str(error)
        if isinstance(error, _interpreted_faults):
            return text
        if said := next((each for each in _KERNEL_ERRORS if each in text), ""):
            return said
    return ""


def _chain(error: object) -> Iterator[BaseException]:
    """An error and those that it came from; a program can make a ring of them, or leave something else."""
    seen: set[int] = set()
    while isinstance(error, BaseException) and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__context__ if error.__cause__ is None else error.__cause__


def _compiled_regions() -> dict[str, list[tuple[str, str, int]]]:
    """The latest 64 that `torch.compile` compiled: by PyTorch's number, name, file and first line of each function.

    After `torch._dynamo.reset` the numbers begin anew.
    """
    latest: Any = getattr(sys.modules.get("torch._dynamo.utils"), "get_compilation_metrics", list)
    found: dict[str, list[tuple[str, str, int]]] = {}
    for item in latest():
        function = (item.co_name, item.co_filename, item.co_firstlineno)
        if item.compile_id and item.co_name and function not in found.setdefault(item.compile_id, []):
            found[item.compile_id].append(function)
    return found
