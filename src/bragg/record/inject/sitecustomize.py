"""Runs first in every Python process of a run: starts its recording, then the next `sitecustomize` of the environment.

The directory of this file leads PYTHONPATH. It leaves `sys.path`, so that the program sees the path it would see alone.
"""
# ruff: noqa: PTH100, PTH118, PTH120
# Before the program has imported anything, `pathlib` would add 10 ms to its start.

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))
_UNRECORDED = "BRAGG_UNRECORDED"


def _start_recording() -> None:
    try:
        _import_recorder().start()
    except Exception as error:  # noqa: BLE001
        for name in [name for name in sys.modules if name.partition(".")[0] in ("bragg", "_bragg_recorder")]:
            del sys.modules[name]
        # An interpreter within the process reads the variables of the process when it begins.
        if os.environ.get(_UNRECORDED) == str(os.getpid()):
            return
        os.environ[_UNRECORDED] = str(os.getpid())
        version = ".".join(map(str, sys.version_info[:2]))
        within = "a sub-interpreter of " if type(error).__name__ == "SubInterpreter" else ""
        reason = " ".join(f"{error}".split()) or type(error).__name__
        if sys.stderr is not None:
            sys.stderr.write(f"bragg: {within}process {os.getpid()} (Python {version}) is not recorded: {reason}\n")


def _import_recorder() -> Any:
    """Import the module that starts the recording: this interpreter's own, else the one that came with the run.

    A program with a `bragg` of its own finds that; the recorder has another name there.
    """
    from importlib import import_module

    name = _import_package()
    # It fails in an interpreter within the process. Of `threading`, imported there, Python before 3.13 waits for the
    # thread that made the interpreter, when another one ends it.
    import_module(f"{name}.core")
    return import_module(f"{name}.record.inside.autostart")


def _import_package() -> str:
    """Returns its name."""
    from importlib.util import spec_from_file_location

    own_name = _own_name()
    if own_name.has_own_module():
        own_name.import_privately(_PACKAGE, [_PACKAGE, os.environ["BRAGG_CORE_DIR"]])
        return str(own_name.PRIVATE_NAME)
    try:
        import bragg  # noqa: F401
    except ModuleNotFoundError:
        path = os.path.join(_PACKAGE, "__init__.py")
        places = [_PACKAGE, os.environ["BRAGG_CORE_DIR"]]
        _execute(spec_from_file_location("bragg", path, submodule_search_locations=places))
    return "bragg"


def _own_name() -> Any:
    """The file beside this one, under no name."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("_bragg_own_name", os.path.join(_HERE, "own_name.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run_next() -> None:
    """Run what would have been imported as `sitecustomize` without bragg; its errors are its own."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None:
        _execute(spec)


def _execute(spec: Any) -> None:
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
_start_recording()
_run_next()
