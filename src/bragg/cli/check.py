"""`bragg check`: find what is wrong with the Triton kernels of a program."""

from __future__ import annotations

from typing import Any

import click

from bragg.cli.console import write_json, write_lines
from bragg.errors import BraggError

__all__ = ["check"]

_FINDINGS = 3
_EPILOG = """\b
Examples:
  bragg check train.py --steps 1
  bragg check --without data-race pytest tests/test_kernels.py
"""


def parse_program(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Any:
    """`6,5,0` as ids along the axes of the grid; axes that are left out are 0."""
    if value is None:
        return None
    parts = value.split(",")
    if len(parts) > 3 or not all(part.strip().isdecimal() for part in parts):
        raise click.BadParameter("one to three numbers: 6,5,0")
    ids = [int(part) for part in parts]
    return tuple((*ids, 0, 0)[:3])


@click.command(epilog=_EPILOG, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS] [--]")
@click.option("--only", multiple=True, metavar="CHECKER", help="Use this checker alone; may be given again.")
@click.option("--add", multiple=True, metavar="CHECKER", help="Use this checker too.")
@click.option("--without", multiple=True, metavar="CHECKER", help="Leave this checker out.")
@click.option("--program", callback=parse_program, metavar="X,Y,Z", help="Execute this program of each grid alone.")
@click.option("--list", "is_list", is_flag=True, help="List the checkers.")
@click.option("-m", "module", is_flag=True, help="The target is a module: -m package.module.")
@click.option("--json", "as_json", is_flag=True, help="The findings as one JSON object, the last line of stdout.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED)
def check(
    target: tuple[str, ...],
    only: tuple[str, ...],
    add: tuple[str, ...],
    without: tuple[str, ...],
    program: tuple[int, int, int] | None,
    is_list: bool,
    module: bool,
    as_json: bool,
) -> int:
    """Run a program, execute its Triton kernels without a GPU, and find what is wrong with them.

    TARGET is `script.py args…`, `-m module args…` or `pytest args…`; what follows belongs to it. Exit code 3: there are
    findings.
    """
    from bragg.debug.faults import KernelFault
    from bragg.debug.session import CheckedSession, checking, chosen_checkers
    from bragg.debug.target import prepare_host, run_program
    from bragg.registry import CHECKERS

    if is_list:
        write_lines(f"{c.name:20} {'on ' if c.is_default else 'off'}  {c.summary}" for c in CHECKERS.values())
        return 0
    session = CheckedSession(chosen_checkers(only, add, without), program)
    error: BraggError | None = None
    code = 0
    prepare_host()
    with checking(session):
        try:
            code = run_program(target, is_module=module)
        except KernelFault:
            code = _FINDINGS
        except BraggError as raised:
            error = raised
    report = session.report
    if as_json:
        write_json("check", report.to_json())
    elif error is None or len(report):
        write_lines(report.lines())
    if error is not None:
        raise error
    return _FINDINGS if len(report) else code
