"""`bragg debug`: step through the Triton kernels of a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bragg.cli.checked_run import parse_program, run_checked
from bragg.cli.console import late_hint, say, write_lines
from bragg.cli.findings_output import FindingsOutput
from bragg.errors import UsageError

_EPILOG = """\b
Examples:
  bragg debug train.py                      stops at breakpoint() in a kernel
  bragg debug --break 55 train.py           stops at line 55, in a kernel
  bragg debug --watch 'out[3,5]' train.py   who writes this element
"""


def _parse_lines(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """`norm.py:55` and `55` as files and lines; no file: the script."""
    parts = [value.rpartition(":") for value in values]
    if not all(line.isdecimal() for _, _, line in parts):
        raise click.BadParameter("a line, or a file and a line: 55, norm.py:55")
    if missing := [file for file, _, _ in parts if file and not Path(file).is_file()]:
        raise click.BadParameter(f"there is no file {missing[0]!r}")
    return tuple((file, int(line)) for file, _, line in parts)


@click.command(epilog=_EPILOG, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS] [--]")
@click.option("--program", callback=parse_program, metavar="X,Y,Z", help="Execute only this program of each grid.")
@click.option("--at-program", callback=parse_program, metavar="X,Y,Z", help="Stop only where this program arrives.")
@click.option(
    "--break",
    "break_at",
    multiple=True,
    callback=_parse_lines,
    metavar="FILE:LINE",
    help="Stop at this line of a kernel, of the script without FILE:; may be repeated.",
)
@click.option(
    "--break-on", multiple=True, metavar="CHECKER", help="Stop where this checker finds a bug; may be repeated."
)
@click.option(
    "--watch", multiple=True, metavar="NAME[I,J]", help="Print each write to this element of a tensor; may be repeated."
)
@click.option("-m", "module", is_flag=True, help="Run a module: -m package.module.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED)
def debug(
    target: tuple[str, ...],
    program: tuple[int, int, int] | None,
    at_program: tuple[int, int, int] | None,
    break_at: tuple[tuple[str, int], ...],
    break_on: tuple[str, ...],
    watch: tuple[str, ...],
    module: bool,
) -> int:
    """Run a program, execute its Triton kernels without a GPU, and stop in them.

    `breakpoint()` and `pdb.set_trace()` in a kernel stop with the values of all programs, or of the chosen one.
    """
    from bragg.debug.session import CheckedSession, chosen_checkers
    from bragg.debug.stepping.debugger import KernelDebugger, stepping
    from bragg.debug.stepping.lines import STOPS
    from bragg.debug.stepping.places import require_line_of_kernel
    from bragg.debug.stepping.stops import StopOn, Watch

    if hint := late_hint(debug, target):
        say([hint])
    lines = [(file or _script(target, line, is_module=module), line) for file, line in break_at] if target else []
    for file, line in lines:
        require_line_of_kernel(file, line, is_script=file == target[0])
        STOPS.add(file, line)
    watches = [Watch(text) for text in watch]
    # What is executed again would stop again.
    stop = StopOn(break_on, at_program)
    checkers = [*chosen_checkers(without=["tuned-twice"]), *(one.checker for one in watches), *stop.checkers]
    session = CheckedSession(checkers, program, stop)
    with stepping(at_program):
        code = run_checked(session, target, FindingsOutput(is_brief=True), module=module)
    if watches:
        write_lines(f"watch: {one.text}, last: {one.last}" for one in watches)
    elif session.report.launches and not KernelDebugger.n_stops and not os.environ.get("PYTHONBREAKPOINT"):
        say(_nothing_stopped(lines, break_on, at_program, program))
    return code


def _script(target: tuple[str, ...], line: int, *, is_module: bool) -> str:
    """The file of lines that are given without one.

    Raises:
        UsageError: The program is no file.
    """
    if is_module or target[0] == "pytest":
        raise UsageError(f"line {line} is of no file: the program is a module", hint=f"Name it: --break FILE:{line}")
    return target[0]


def _nothing_stopped(
    break_at: list[tuple[str, int]],
    break_on: tuple[str, ...],
    at_program: tuple[int, int, int] | None,
    program: tuple[int, int, int] | None,
) -> list[str]:
    where = f" with program {at_program} among those that got there" if at_program else ""
    found = f", and {' and '.join(break_on)} found nothing to stop at" if break_on else ""
    lines = f", nor line {' or '.join(str(line) for _, line in break_at)}" if break_at else ""
    hint = "Write breakpoint() into a kernel, or stop at a finding: bragg debug --break-on out-of-bounds …"
    if program and "data-race" in break_on:
        chosen = ",".join(map(str, program))
        hint = f"--program executes one program, which races with no other: --at-program {chosen} executes all of them"
    return [
        f"nothing stopped: no breakpoint() in a kernel was reached{lines}{where}{found}",
        f"hint: {hint}",
    ]
