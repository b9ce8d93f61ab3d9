"""The native core, or an error that says what to do without it."""

from __future__ import annotations

import _thread
from importlib import import_module

__all__ = ["core"]


def _is_main_interpreter() -> bool:
    tell = getattr(_thread, "_is_main_interpreter", None)  # Since 3.12.
    if tell is not None:
        return bool(tell())
    try:
        interpreters = import_module("_xxsubinterpreters")
    except ImportError:  # Then no Python code makes others.
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


# The core's types, made once more, would no longer be those of the recording that is under way.
if not _is_main_interpreter():
    from bragg.errors import SubInterpreter

    raise SubInterpreter(
        "only the main interpreter of a process is recorded", hint="Run the code to record in the main interpreter"
    )

try:
    import bragg._core as core
except ImportError as error:
    from bragg.errors import BackendUnavailable

    is_absent = isinstance(error, ModuleNotFoundError) and error.name == "bragg._core"
    raise BackendUnavailable(
        "bragg has no recorder for this Python: it can show profiles and debug Triton kernels"
        if is_absent
        else f"the native core of bragg cannot be loaded: {error}",
        hint="To record, install bragg on Linux from a wheel for this Python, or from source",
    ) from error
