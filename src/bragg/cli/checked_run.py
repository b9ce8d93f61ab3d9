"""What `bragg check` and `bragg debug` share: a program whose kernel launches go to a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.annotations.outcome import Outcome
from bragg.cli.console import say
from bragg.cli.findings_output import FindingsOutput
from bragg.errors import BraggError

if TYPE_CHECKING:
    from bragg.debug.session import CheckedSession

__all__ = ["parse_program", "run_checked"]

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


def run_checked(
    session: CheckedSession, target: tuple[str, ...], output: FindingsOutput | None = None, *, module: bool
) -> int:
    """Run a program and write what was found, in it and in the processes that it starts.

    Args:
        session: Executes its launches.
        target: The program.
        output: Where findings go; None: as text to stdout.
        module: The program is a module.

    Returns:
        3 when there are findings, else the program's own exit code, which is 130 after Ctrl-C; 7 when that is 0 and no
        kernel was executed.

    Raises:
        BraggError: The program cannot be run, or has a kernel that the engine does not know how to execute.
    """
    from bragg.debug.children import with_children
    from bragg.debug.faults import KernelFault
    from bragg.debug.host.target import host_without_gpu, run_program
    from bragg.debug.session import checking
    from bragg.debug.unreached import unreached

    code, error, is_stopped, root = 0, None, False, Path.cwd()
    with with_children(session), host_without_gpu(session.target), checking(session):
        try:
            code = run_program(target, is_module=module)
        except KernelFault:
            code = _FINDINGS
        except BraggError as raised:
            error = raised
        except KeyboardInterrupt:
            code, is_stopped = _STOPPED, True
    report, said = session.report, ""
    if is_stopped:
        said = "stopped by Ctrl-C: what was not executed was not checked"
    elif error is None and not report.launches and not len(report):
        said, code = unreached(), code or _NOTHING_CHECKED
    problem = str(error or said) or (f"the program ended with exit code {code}" if code not in (0, _FINDINGS) else "")
    (output or FindingsOutput()).write(Outcome(report, root, problem), has_text=error is None or len(report) > 0)
    if error is not None:
        raise error
    if said:
        say([said])
    return _FINDINGS if len(report) else code
