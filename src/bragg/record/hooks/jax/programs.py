"""JAX: compilations, the ranges that XLA pushes on a GPU, and what compiled programs say of their operations.

A name that some version of JAX lacks costs what depends on it, never the program.
"""

from __future__ import annotations

import functools
import os
import sys

from bragg.core import core
from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

__all__ = ["COMPILER", "read_ranges", "record_compilations"]

COMPILER = "jax._src.compiler"

_BACKENDS = "jax._src.xla_bridge"

# Hashes of their texts: each is recorded once, for any number of sessions.
_programs: set[int] = set()


def read_ranges(_jax: ModuleType) -> Callable[[], None]:
    """Let the ranges that XLA pushes be read from now on.

    Returns:
        What undoes it.
    """
    core.read_xla(True)
    return lambda: core.read_xla(False)


def record_compilations(compiler: ModuleType) -> Callable[[], None] | None:
    """Make a scope of each compilation, and keep what its program says of operations, as do programs that exist.

    What XLA's own threads run meanwhile, as candidates of its autotuning, belongs to the compilation.

    Returns:
        What undoes it; None when this JAX compiles otherwise.
    """
    compile_program = getattr(compiler, "compile_or_get_cached", None)
    if compile_program is None:
        note(f"JAX {_version()} hides its compiler: compilations and lines of HLO operations are not recorded")
        return None

    @functools.wraps(compile_program)
    def compile_or_get_cached(backend: Any, computation: Any, *arguments: Any, **options: Any) -> Any:
        with core.Scope(f"[compile] {_name_of(computation)}"):
            core.lend_context()
            try:
                executable = compile_program(backend, computation, *arguments, **options)
            finally:
                core.return_context()
        if _has_ranges(backend):
            _keep_operations(executable)
        return executable

    compiler.compile_or_get_cached = compile_or_get_cached  # type: ignore[attr-defined]
    _keep_live_programs()
    return lambda: setattr(compiler, "compile_or_get_cached", compile_program)


def _version() -> str:
    return str(getattr(sys.modules.get("jax"), "__version__", ""))


def _name_of(computation: Any) -> str:
    try:
        return str(computation.operation.attributes["sym_name"].value)
    except (AttributeError, KeyError):
        return "a program"


def _has_ranges(backend: Any) -> bool:
    """Whether XLA tells when operations run: it does not on CPUs."""
    return getattr(backend, "platform", "cpu") != "cpu"


@guarded
def _keep_live_programs() -> None:
    """Those of devices that are in use already."""
    for backend in list(getattr(sys.modules.get(_BACKENDS), "_backends", {}).values()):
        for executable in backend.live_executables() if _has_ranges(backend) else ():
            _keep_operations(executable)


@guarded
def _keep_operations(executable: Any) -> None:
    from bragg.grouping.hlo_program import PROGRAM_KEY, program_text
    from bragg.record.hooks.jax.hlo_text import operations_in

    for module in executable.hlo_modules():
        text = module.to_string()
        if hash(text) not in _programs:
            _programs.add(hash(text))
            operations = operations_in(text, _is_library)
            core.describe_operator(module.name, f"{PROGRAM_KEY} {len(_programs)}", program_text(operations))


def _is_library(file: str) -> bool:
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
