"""`bragg debug`: step through the Triton kernels of a program."""

from __future__ import annotations

import os

import click

from bragg.cli.checked_run import parse_program, run_checked
from bragg.cli.console import late_hint, say, write_lines
from bragg.cli.findings_output import FindingsOutput

__all__ = ["debug"]

_EPILOG = """\b
Examples:
  bragg debug train.py                      stops at breakpoint() in a kernel
  bragg debug --at-program 6,5 train.py     only where (6, 5, 0) gets to
  bragg debug --watch 'out[3,5]' train.py   who writes this element
"""


@click.command(epilog=_EPILOG, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS] [--]")
@click.option("--program", callback=parse_program, metavar="X,Y,Z", help="Execute only this program of each grid.")
@click.option("--at-program", callback=parse_program, metavar="X,Y,Z", help="Stop only where this program arrives.")
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
    break_on: tuple[str, ...],
    watch: tuple[str, ...],
    module: bool,
) -> int:
    """Run a program, execute its Triton kernels without a GPU, and stop in them.

    `breakpoint()` and `pdb.set_trace()` in a kernel stop with the values of all programs, or of the chosen one.
    """
    from bragg.debug.session import CheckedSession, chosen_checkers
    from bragg.debug.stepping.debugger import KernelDebugger, stepping
    from bragg.debug.stepping.stops import Watch, stop_on

    if hint := late_hint(debug, target):
        say([hint])
    watches = [Watch(text) for text in watch]
    # What is executed again would stop again.
    checkers = [*chosen_checkers(without=["tuned-twice"]), *(one.checker for one in watches)]
    session = CheckedSession(checkers, program, stop_on(break_on, at_program))
    with stepping(at_program):
        code = run_checked(session, target, FindingsOutput(is_brief=True), module=module)
    if watches:
        write_lines(f"watch: {one.text}, last: {one.last}" for one in watches)
    elif session.report.launches and not KernelDebugger.n_stops and not os.environ.get("PYTHONBREAKPOINT"):
        say(_nothing_stopped(break_on, at_program))
    return code


def _nothing_stopped(break_on: tuple[str, ...], at_program: tuple[int, int, int] | None) -> list[str]:
    where = f" with program {at_program} among those that got there" if at_program else ""
    found = f", and {' and '.join(break_on)} found nothing to stop at" if break_on else ""
    return [
        f"nothing stopped: no breakpoint() in a kernel was reached{where}{found}",
        "hint: Write breakpoint() into a kernel, or stop at a finding: bragg debug --break-on out-of-bounds …",
    ]
