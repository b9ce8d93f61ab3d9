"""`bragg check`: find what is wrong with the Triton kernels of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bragg.cli.checked_run import parse_program, run_checked
from bragg.cli.completion import checkers, finding_formats, programs
from bragg.cli.console import late_hint, say, write_lines
from bragg.cli.findings_output import chosen_output
from bragg.cli.progress import StatusLine

_EPILOG = """\b
Examples:
  bragg check train.py --steps 1
  bragg check --without data-race pytest tests/test_kernels.py
  bragg check -f sarif -o findings.sarif pytest tests
"""


# What executes launches again in other ways.
_VARYING = ("order-dependence", "launch-dependence")


class _Check(click.Command):
    """Its help names the checkers."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The checkers, then examples."""
        from bragg.registry import CHECKERS

        with formatter.section("Checkers"):
            formatter.write_dl([(c.name, f"{'' if c.is_default else '(off) '}{c.summary}") for c in CHECKERS.values()])
        super().format_epilog(ctx, formatter)


@click.command(
    cls=_Check, epilog=_EPILOG, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS] [--]"
)
@click.option(
    "--only", multiple=True, metavar="CHECKER", shell_complete=checkers, help="Use only this checker; may be repeated."
)
@click.option(
    "--add",
    multiple=True,
    metavar="CHECKER",
    shell_complete=checkers,
    help="Also use this checker, which is off by default; may be repeated.",
)
@click.option("--all", "is_all", is_flag=True, help="Use all checkers, also those that are off by default.")
@click.option(
    "--vary", "is_varied", is_flag=True, help="Also run programs in another order, with other blocks and counts."
)
@click.option(
    "--without",
    multiple=True,
    metavar="CHECKER",
    shell_complete=checkers,
    help="Do not use this checker; may be repeated.",
)
@click.option("--program", callback=parse_program, metavar="X,Y,Z", help="Execute only this program of each grid.")
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop if a launch takes longer than this.",
)
@click.option(
    "--target",
    "gpu",
    default="",
    metavar="GPU",
    help="Check for this GPU: sm_90, sm_100, gfx942, any.  [the machine's, else sm_90]",
)
@click.option("--list", "is_list", is_flag=True, help="List the checkers and exit.")
@click.option("-m", "module", is_flag=True, help="Run a module: -m package.module.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON object, the last line of stdout.")
@click.option(
    "-f",
    "--format",
    "format_name",
    metavar="FORMAT",
    shell_complete=finding_formats,
    help="Write the findings as sarif, junit or github.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write FORMAT to this file instead of stdout.",
)
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="PROFILE",
    help="Also add the findings to this profile of the program, for bragg report.",
)
@click.argument("target", nargs=-1, type=click.UNPROCESSED, shell_complete=programs)
def check(
    target: tuple[str, ...],
    only: tuple[str, ...],
    add: tuple[str, ...],
    is_all: bool,
    is_varied: bool,
    without: tuple[str, ...],
    program: tuple[int, int, int] | None,
    limit: float | None,
    gpu: str,
    is_list: bool,
    module: bool,
    as_json: bool,
    format_name: str | None,
    output: Path | None,
    force: bool,
    into: Path | None,
) -> int:
    """Find bugs in the Triton kernels of a program, without a GPU.

    The program runs as usual; its Triton kernels are executed on the CPU and checked. TARGET is `script.py args…`, `-m
    module args…` or `pytest args…`. Options of bragg stand before it.

    Exit code 3: there are findings. Exit code 5: a launch took longer than --limit.
    """
    from bragg.debug.host.patience import Patience
    from bragg.debug.session import CheckedSession, chosen_checkers
    from bragg.registry import CHECKERS

    if is_list:
        write_lines(f"{c.name:20} {'on ' if c.is_default else 'off'}  {c.summary}" for c in CHECKERS.values())
        return 0
    add = tuple(CHECKERS) if is_all else (*add, *_VARYING) if is_varied else add
    patience = Patience(limit, lambda text: say([text]), status=StatusLine(sys.stderr))
    session = CheckedSession(chosen_checkers(only, add, without), program, patience=patience, target=gpu)
    if hint := late_hint(check, target):
        say([hint])
    where = chosen_output(format_name, output, force, as_json=as_json, profile=into)
    return run_checked(session, target, where, module=module)
