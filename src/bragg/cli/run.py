"""`bragg run`: record a program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.console import error_lines, say, stream_style, write_json
from bragg.cli.process_end import end_like
from bragg.errors import BackendUnavailable, BraggError, NothingRecorded

if TYPE_CHECKING:
    from bragg.cli.run_report import RunReport
    from bragg.record import RunResult

__all__ = ["run"]

_EPILOG = """\b
Examples:
  bragg run train.py --epochs 2
  bragg run -o 'out/%h-%p.bragg' -- torchrun --nproc-per-node 4 train.py
"""


class _RunCommand(click.Command):
    """Takes everything from the program's name on as it is, with the `--` or `-m` in front of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        target: tuple[str, ...] = ctx.params["target"]
        before = given[: len(given) - len(target)]
        if ctx.params.pop("module", False):
            ctx.params["target"] = ("-m", *target)
        elif before[-1:] == ["--"]:
            ctx.params["target"] = ("--", *target)
        return rest


@click.command(
    cls=_RunCommand,
    epilog=_EPILOG,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] [--]",
)
@click.option(
    "-o", "--output", metavar="PATTERN", help="Name of the profile: %s script, %p pid, %r rank, %h host.  [%s.bragg]"
)
@click.option("--force", is_flag=True, help="Overwrite an existing profile instead of numbering the new one.")
@click.option("--backend", type=click.Choice(["auto", "cuda", "cpu"]), help="What measures.  [auto]")
@click.option(
    "--context", type=click.Choice(["python", "shadow"]), help="Call paths with Python frames or without.  [python]"
)
@click.option("--data", type=click.Choice(["tree", "trace"]), help="Sums by call path, or every event.  [tree]")
@click.option(
    "--flush-interval", "flush_interval_ms", type=int, metavar="MS", help="What a killed run loses at most.  [1000]"
)
@click.option(
    "--sample-interval", "sample_interval_us", type=int, metavar="US", help="Time between host samples; 0: none."
)
@click.option("-m", "module", is_flag=True, help="The target is a module: -m package.module.")
@click.option("-v", "--verbose", is_flag=True, help="Say what each process recorded.")
@click.option("--no-summary", is_flag=True, help="Do not say where the time went.")
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object, the last line of stdout.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED)
def run(target: tuple[str, ...], verbose: bool, no_summary: bool, as_json: bool, **choices: Any) -> int:
    """Run a program and record where its time goes.

    TARGET is `script.py args…`, `-m module args…`, `pytest args…`, or `-- command args…`; what follows belongs to it.
    Its child processes are recorded too, one profile each. The exit code is that of the target.
    """
    from bragg.record import RecordConfig, run_target

    config = RecordConfig(**{name: value for name, value in choices.items() if value is not None})
    result = run_target(config, target)
    try:
        report = _finish(result)
        if as_json:
            write_json("run", report.to_json())
        else:
            say(report.lines(stream_style(sys.stderr), summary=not no_summary, every_process=verbose))
        _check_backend(config.backend, report)
    except BraggError as error:
        if result.exit_code == 0:
            raise
        say(error_lines(error.message, error.hint))
    return end_like(result.exit_code)


def _finish(result: RunResult) -> RunReport:
    """Write the profiles of a run.

    Raises:
        NothingRecorded: There is nothing to write.
        RecordingFailed: Something could not be written.
    """
    from bragg import formats
    from bragg.cli.run_report import RunReport

    finished = result.finish(formats.finish)
    if not finished.profiles:
        raise NothingRecorded(_why_empty(finished.empty), hint=_hint_for_empty(result))
    return RunReport(result.exit_code, result.duration_s, finished.profiles, finished.empty, result.notes)


def _why_empty(n_processes: int) -> str:
    if n_processes:
        return "nothing was recorded: the program ended before it launched, entered or was seen doing anything"
    return "nothing was recorded: no process of the program was Python or used a GPU"


def _hint_for_empty(result: RunResult) -> str:
    if result.exit_code < 0:
        return "A killed program loses what came after the last flush: try --flush-interval 100"
    return "; ".join(result.notes)


def _check_backend(requested: str | None, report: RunReport) -> None:
    """Check that the backend that was asked for did measure.

    Raises:
        BackendUnavailable: It failed in every process; the profiles hold the host's side.
    """
    cuda = [profile.meta.get("cuda", {}) for _, profile in report.profiles]
    if requested == "cuda" and cuda and all(state.get("state") == "failed" for state in cuda):
        raise BackendUnavailable(
            f"GPU work was not recorded: {cuda[0].get('reason', 'unknown reason')}", hint="Run: bragg doctor"
        )
