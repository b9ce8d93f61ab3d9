"""JAX: compilations, the ranges that XLA pushes on a GPU, and what compiled programs say of their operations.

A name that some version of JAX lacks costs what depends on it, never the program.
"""

from __future__ import annotations

import functools
import os
import re
import sys

from bragg.core import core
from bragg.record.hooks.jax.arguments import watch_again
from bragg.record.hooks.jax.constants import captured_constants
from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.jax.hlo.collectives import CompiledFor


COMPILER = "jax._src.compiler"

_BACKENDS = "jax._src.xla_bridge"

# Hashes of their texts, alone and with devices: each is recorded once, for any number of sessions.
_programs: set[int] = set()
# By name of what was compiled, in order: hashes of programs, and what their inputs are.
_compiled: dict[str, tuple[dict[int, int], dict[str, int]]] = {}
# The line of a program that has shapes and types of its inputs; constants of more elements are not written out.
_MAIN, _ELEMENTS = re.compile(r"func\.func public @main\((.*)\) -> "), 16


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
        name = _name_of(computation)
        _tell_apart(name, computation)
        with core.Scope(f"[compile] {name}"):
            core.lend_context()
            try:
                executable = compile_program(backend, computation, *arguments, **options)
            finally:
                core.return_context()
        if _has_ranges(backend):
            _keep_operations(executable, options.get("devices", arguments[0] if arguments else None))
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


@guarded
def _tell_apart(name: str, computation: Any) -> None:
    """Say which program of its name this is, and which inputs it has: why a function is compiled again."""
    from bragg.grouping.hlo_names import CAPTURED, COMPILE, COMPILED

    text = computation.operation.get_asm(large_elements_limit=_ELEMENTS)
    main = _MAIN.search(text)
    programs, inputs = _compiled.setdefault(name, ({}, {}))
    program = programs.setdefault(hash(text), len(programs))
    if len(programs) > 1:
        watch_again(name)
    kind = inputs.setdefault(main[1] if main else text, len(inputs))
    core.describe_scope(f"{COMPILE}{name}", f"{COMPILED}{program}", f"inputs {kind}")
    if told := captured_constants(computation.operation, text, _ELEMENTS, _is_library):
        core.describe_scope(f"{COMPILE}{name}", f"{CAPTURED}{program}", told)


def _has_ranges(backend: Any) -> bool:
    """Whether XLA tells when operations run: it does not on CPUs."""
    return getattr(backend, "platform", "cpu") != "cpu"


@guarded
def _keep_live_programs() -> None:
    """Those of devices that are in use already."""
    for backend in list(getattr(sys.modules.get(_BACKENDS), "_backends", {}).values()):
        for executable in backend.live_executables() if _has_ranges(backend) else ():
            # In the order of the program, of which other processes may have devices, too.
            is_alone = backend.device_count() == backend.local_device_count()
            _keep_operations(executable, executable.local_devices() if is_alone else None)


@guarded
def _keep_operations(executable: Any, devices: Any) -> None:
    """Keep what a program says.

    Args:
        executable: The program.
        devices: That it was compiled for, an array of any shape; None: not known.
    """
    from bragg.grouping.hlo_program import PROGRAM_KEY, program_text
    from bragg.record.hooks.jax.hlo.text import operations_in

    compiled_for = _compiled_for(devices)
    for module in executable.hlo_modules():
        text = module.to_string()
        keys = {hash(text), hash((text, compiled_for.ids))} if compiled_for else {hash(text)}
        if not keys <= _programs:
            _programs.update(keys)
            operations = operations_in(text, _is_library, compiled_for)
            started = _started(module) if "-start(" in text else ()
            operations |= {name: operations[start] for start, name in started if start in operations}
            core.describe_operator(module.name, f"{PROGRAM_KEY} {len(_programs)}", program_text(operations))


def _started(module: Any) -> Iterator[tuple[str, str]]:
    """Names of instructions that start others, and of these: ranges have the latter, which the text leaves out."""
    for computation in getattr(module, "computations", tuple)():
        for instruction in computation.instructions():
            if instruction.opcode.name == "kAsyncStart" and hasattr(instruction, "async_wrapped_root"):
                yield instruction.name, instruction.async_wrapped_root().name


def _compiled_for(devices: Any) -> CompiledFor | None:
    import numpy as np

    from bragg.record.hooks.jax.hlo.collectives import CompiledFor

    if devices is None:
        return None
    placed = list(np.asarray(devices, object).flat)
    try:
        ids = tuple(int(device.id) for device in placed)
        own = [device.process_index == device.client.process_index() for device in placed]
        gpus = {place: int(placed[place].local_hardware_id) for place in range(len(placed)) if own[place]}
    except (AttributeError, TypeError):  # Of a compiler without devices, or devices without numbers.
        return None
    return CompiledFor(ids, gpus)


def _is_library(file: str) -> bool:
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
