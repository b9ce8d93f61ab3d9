"""What `bragg check` and `bragg debug` share: a program whose kernel launches go to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bragg.cli.console import say, write_json, write_lines
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


def run_checked(session: CheckedSession, target: tuple[str, ...], *, module: bool, as_json: bool = False) -> int:
    """Run a program and write what was found, in it and in the processes that it starts.

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

    code, error, is_stopped = 0, None, False
    with with_children(session), host_without_gpu(session.target), checking(session):
        try:
            code = run_program(target, is_module=module)
        except KernelFault:
            code = _FINDINGS
        except BraggError as raised:
            error = raised
        except KeyboardInterrupt:
            code, is_stopped = _STOPPED, True
    if as_json:
        write_json("check", session.report.to_json())
    elif error is None or len(session.report):
        write_lines(session.report.lines())
    if error is not None:
        raise error
    if is_stopped:
        say(["stopped by Ctrl-C: what was not executed was not checked"])
        return _FINDINGS if len(session.report) else code
    if not session.report.launches and not len(session.report):
        say(unreached())
        return code or _NOTHING_CHECKED
    return _FINDINGS if len(session.report) else code
