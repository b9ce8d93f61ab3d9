"""What `bragg check` and `bragg debug` share: a program whose kernel launches go to a session."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.annotations.outcome import Outcome
from bragg.cli.console import say
from bragg.cli.findings_output import FindingsOutput
from bragg.errors import BraggError

if TYPE_CHECKING:
    from bragg.debug.report import Report
    from bragg.debug.session import CheckedSession


_FINDINGS = 3
# Of a program that SIGINT ended.
_STOPPED = 130
_NOTHING_CHECKED = 7


def parse_program(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Any:
    """`6,5,0` as ids along the axes of the grid; axes that are left out are 0."""
    if value is None:
        return None
    parts = value.split(",")
    if len(parts) > 3 or not all(part.strip().isdecimal() for part in parts):
        raise click.BadParameter("one to three numbers: 6,5,0")
    ids = [int(part) for part in parts]
    return tuple((*ids, 0, 0)[:3])


def run_checked(session: CheckedSession, target: tuple[str, ...], output: FindingsOutput, *, module: bool) -> int:
    """Run a program and write what was found, in it and in the processes that it starts.

    Args:
        session: Executes its launches.
        target: The program.
        output: Where findings go, and how much of them.
        module: The program is a module.

    Returns:
        3 when there are findings, else the program's own exit code, which is 130 after Ctrl-C; 7 when that is 0 and no
        kernel was executed, or not every one.

    Raises:
        BraggError: The program cannot be run, or has a kernel that the engine does not know how to execute.
    """
    from bragg.debug.children import with_children
    from bragg.debug.host.ending import refuse_late_launches
    from bragg.debug.host.leaving import concluded_before_leaving, end_forked
    from bragg.debug.host.target import host_without_gpu
    from bragg.debug.session import checking

    own, root, program = os.getpid(), Path.cwd(), shlex.join(["-m", *target] if module else target)
    with with_children(session) as collect:

        def conclude(end: _End) -> int:
            collect(True)
            return _concluded(session.report, output, root, end, program)

        leaving = concluded_before_leaving(lambda code: conclude(_End(code)))
        with host_without_gpu(session.target), checking(session), leaving:
            end = _run_to_its_end(target, session.report, is_module=module)
        if os.getpid() != own:
            end_forked(end.code)
        code = conclude(end)
    if end.error is not None:
        raise end.error
    refuse_late_launches(code or _NOTHING_CHECKED)
    return code


@dataclass
class _End:
    """How a program has ended.

    Attributes:
        code: Its exit code.
        error: The error of bragg's own that ended it.
        is_stopped: Ctrl-C did.
        unreached: What to say of kernels that it did not launch; empty: not known.
    """

    code: int
    error: BraggError | None = None
    is_stopped: bool = False
    unreached: str = ""


def _run_to_its_end(target: tuple[str, ...], report: Report, *, is_module: bool) -> _End:
    from bragg.debug.faults import KernelFault
    from bragg.debug.host.ending import watched_ending
    from bragg.debug.host.target import run_program
    from bragg.debug.unreached import unreached

    try:
        with watched_ending() as ending:
            try:
                end = _End(run_program(target, is_module=is_module))
            except KernelFault:
                end = _End(_FINDINGS)
            except BraggError as raised:
                end = _End(0, raised)
            ending.run()
            if not report.launches:  # Before its functions are gone.
                end.unreached = unreached(end.code)
            ending.destroy_objects()
    except KeyboardInterrupt:
        return _End(_STOPPED, is_stopped=True)
    return end


def _concluded(report: Report, output: FindingsOutput, root: Path, end: _End, program: str) -> int:
    """Write what was found, and give the exit code."""
    from bragg.debug.unreached import unreached

    said, code, error = "", end.code, end.error
    if end.is_stopped:
        said = "stopped by Ctrl-C: what was not executed was not checked"
    elif error is None and report.refused:
        said, code = f"not everything was checked: {next(iter(report.refused))}", code or _NOTHING_CHECKED
    elif error is None and not report.launches and not len(report):
        said, code = end.unreached or unreached(code), code or _NOTHING_CHECKED
    elif error is None and not report.programs and not len(report):
        said, code = "nothing was checked: no launch has a program", code or _NOTHING_CHECKED
    problem = str(error or said) or (f"the program ended with exit code {code}" if code not in (0, _FINDINGS) else "")
    output.write(Outcome(report, root, problem), has_text=error is None or len(report) > 0)
    if said:
        say([said])
    elif not (problem and not len(report)) and (step := output.next_step(report, program)):
        say([f"Next: {step}"])
    return _FINDINGS if len(report) else code
