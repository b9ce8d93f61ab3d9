"""The command line of Proton: `python -m bragg.proton.proton [options] {script.py|pytest|-m module} [arguments]`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bragg.errors import BraggError
from bragg.proton.flags import flags
from bragg.proton.profile import finalize, start
from bragg.proton.recording.settings import PROFILERS, SAMPLING_PROFILER, default_profiler
from bragg.record.hooks.alias import PROTON, alias_modules

__all__ = ["main"]

_USAGE = """
    proton [options] script.py [script_args] [script_options]
    proton [options] pytest [pytest_args] [script_options]
    proton [options] -- -m module [module_args]
    python -m bragg.proton [options] script.py [script_args] [script_options]
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Record a program and exit with its status; what it does with sessions itself is left out."""
    options = _parse(arguments)
    if not options.target:
        raise SystemExit("proton: nothing to run; give a script: proton script.py")
    program = Path(options.target[0])
    if program.name not in ("-m", "pytest") and not program.exists():
        raise SystemExit(f"proton: {program}: there is no such file")
    alias_modules(PROTON)  # The scopes of a program that imports `triton.profiler` are in this session.
    try:
        start(
            options.name,
            context=options.context,
            data=options.data,
            backend=options.backend or default_profiler(),
            mode=options.mode,
            hook=options.hook,
        )
        flags.command_line = True
        try:
            status = _run(options.target)
        finally:
            flags.command_line = False
            finalize()
    except BraggError as error:
        raise SystemExit(f"proton: {error}. {error.hint}") from error
    sys.exit(status)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="proton",
        description="Records scripts, modules and pytest.",
        usage=_USAGE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("-n", "--name", help="Name of the profiling session")
    parser.add_argument("-b", "--backend", help="What measures", choices=[*PROFILERS, SAMPLING_PROFILER])
    parser.add_argument("-c", "--context", help="What call paths hold", default="shadow", choices=["shadow", "python"])
    parser.add_argument("-m", "--mode", help="How it is measured")
    parser.add_argument(
        "-d", "--data", help="Sums by call path, or every event", default="tree", choices=["tree", "trace"]
    )
    parser.add_argument("-k", "--hook", help="What names kernels", choices=["triton"])
    parser.add_argument("target", nargs=argparse.REMAINDER, help="Script, pytest, or -- -m module; with arguments")
    options = parser.parse_args(arguments)
    if options.target[:1] == ["--"]:
        del options.target[0]
    return options


def _run(target: list[str]) -> int | str | None:
    """Run a program in this process, and show the exception that ended it.

    Returns:
        Its exit status.
    """
    try:
        if Path(target[0]).name == "pytest":
            import pytest

            return int(pytest.main(target[1:]))
        if target[0] == "-m":
            _run_module(target[1:])
        else:
            _run_script(target)
    except SystemExit as error:
        return error.code
    except KeyboardInterrupt:
        return 1
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return 1
    return 0


def _run_script(target: list[str]) -> None:
    sys.argv = target
    sys.path.insert(0, os.path.dirname(os.path.abspath(target[0])))  # noqa: PTH100, PTH120
    runpy.run_path(target[0], run_name="__main__")


def _run_module(target: list[str]) -> None:
    if not target:
        raise SystemExit("proton: -m needs the name of a module")
    sys.argv = target
    sys.path.insert(0, "")
    runpy.run_module(target[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
