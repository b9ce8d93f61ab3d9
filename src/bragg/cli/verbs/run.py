"""`bragg run`: record a program."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from bragg.cli.console import error_lines, say, stream_style, write_json
from bragg.cli.process_end import end_like
from bragg.errors import BraggError, NothingRecorded

__all__ = ["run"]

_EPILOG = """\b
Examples:
  bragg run train.py --epochs 2
  bragg run -o 'out/%h-%p.bragg' -- torchrun --nproc-per-node 4 train.py
"""


_SAMPLING_MODES = ("continuous", "windows", "serialized")
_API_LEVELS = ("all", "sync")
# Options that may stand alone: the word after them may be the target. Alone they mean the first of their choices.
_CHOICES_OF_BARE = {"--sample": _SAMPLING_MODES, "--gpu-api": _API_LEVELS}
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class _RunCommand(click.Command):
    """Leaves everything from the program's name on as it is, and keeps the `--` or `-m` in front of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = self._with_choices(args)
        given = list(args)
        rest = super().parse_args(ctx, args)
        target: tuple[str, ...] = ctx.params["target"]
        before = given[: len(given) - len(target)]
        marks = [mark for mark, is_given in (("--", before[-1:] == ["--"]), ("-m", ctx.params["module"])) if is_given]
        ctx.params["target"] = (*marks, *target)
        return rest

    def _with_choices(self, args: list[str]) -> list[str]:
        """The arguments with a choice for each bare option."""
        valued = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        given = list(args)
        position = 0
        while position < len(given) and given[position].startswith("-") and given[position] != "--":
            option = given[position]
            choices = _CHOICES_OF_BARE.get(option, ())
            if choices and given[position + 1 : position + 2] not in [[choice] for choice in choices]:
                given[position] = f"{option}={choices[0]}"
                position += 1
            else:
                position += 2 if option in valued else 1
        return given


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A share of a whole: `3%` or `0.03`."""
    try:
        return None if value is None else float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no share; write 3% or 0.03", ctx, param) from error


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """A time with its unit, in s."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h)", value or "0s")
    if match is None:
        raise click.BadParameter(f"{value!r} is no time such as 500ms, 60s, 5min or 1h")
    return float(match[1]) * _SECONDS[match[2]] if value else None


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
    "--context",
    type=click.Choice(["python", "native", "shadow"]),
    help="Call paths with Python frames, with those and C/C++ functions, or with scopes alone.  [python]",
)
@click.option("--data", type=click.Choice(["tree", "trace"]), help="Sums by call path, or every event.  [tree]")
@click.option("--graphs", type=click.Choice(["node", "graph"]), help="CUDA graphs by kernel, or as a whole.  [node]")
@click.option(
    "--gpu-api",
    type=click.Choice(_API_LEVELS),
    help="Calls of the CUDA runtime and driver as nodes; sync: those that wait.  [off]",
)
@click.option(
    "--framework",
    type=click.Choice(["auto", "torch", "jax", "off"]),
    help="Whose operators to record; auto: of all that the program imports.  [auto]",
)
@click.option("--modules", is_flag=True, help="Calls of PyTorch's modules, for bragg view --group-by module.")
@click.option("--shapes", is_flag=True, help="PyTorch's operators with shapes and types of their tensors.")
@click.option(
    "--regions",
    metavar="NAME[,NAME]",
    help="Parts of training with PyTorch: all, or some of step, data, forward, backward, optimizer; with JAX steps; "
    "for bragg view --group-by region.",
)
@click.option(
    "--flush-interval", "flush_interval_ms", type=int, metavar="MS", help="What a killed run loses at most.  [1000]"
)
@click.option(
    "--tree-limit",
    "tree_limit_mb",
    type=int,
    metavar="MB",
    help="Memory that call paths may take in a process.  [1024]",
)
@click.option(
    "--sample-interval",
    "sample_interval_us",
    type=int,
    metavar="US",
    help="Time between host samples; 0: none.  [1000, with a GPU 10000]",
)
@click.option(
    "--sample",
    "sampling",
    type=click.Choice(_SAMPLING_MODES),
    help="Sample instructions of kernels; without a mode continuous.  [off]",
)
@click.option("--sample-period", type=int, metavar="N", help="A multiprocessor is sampled every 2^N cycles.  [15]")
@click.option(
    "--sample-budget",
    callback=_share,
    metavar="SHARE",
    help="Share of the time that windows may cost: 3% or 0.03.  [0.03]",
)
@click.option(
    "--rotate",
    "rotate_s",
    callback=_seconds,
    metavar="TIME",
    help="Begin a new profile after this time, such as 60s, 5min or 1h; each is written when it is complete.",
)
@click.option("--keep", "rotate_keep", type=int, metavar="N", help="With --rotate: keep only the latest N profiles.")
@click.option("--nvtx/--no-nvtx", default=None, help="Ranges and marks of NVTX; on unless BRAGG_NVTX=0.")
@click.option(
    "--launch-metadata/--no-launch-metadata",
    default=None,
    help="Names and numbers that Triton kernels give to their launches; on unless switched off.",
)
@click.option(
    "--kernel-code/--no-kernel-code",
    default=None,
    help="Source and compiled code of kernels in the profile; on unless switched off.",
)
@click.option(
    "--interpret",
    type=click.Choice(["auto", "on", "off"]),
    help="Execute Triton's kernels on the CPU; auto: where there is no GPU.  [auto]",
)
@click.option("--require-samples", is_flag=True, help="Nothing recorded is a failure: exit code 7.")
@click.option("--as-proton", is_flag=True, help="Let `import triton.profiler` give bragg's drop-in for it.")
@click.option("-m", "module", is_flag=True, help="The target is a module: -m package.module.")
@click.option("-v", "--verbose", is_flag=True, help="Say what each process recorded.")
@click.option("--no-summary", is_flag=True, help="Do not say where the time went.")
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object, the last line of stdout.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED)
def run(
    target: tuple[str, ...],
    module: bool,
    verbose: bool,
    no_summary: bool,
    as_json: bool,
    require_samples: bool,
    **choices: Any,
) -> int:
    """Run a program and record where its time goes.

    TARGET is `script.py args…`, `-m module args…`, `pytest args…`, or `-- command args…`; what follows belongs to it.
    Its child processes are recorded too, one profile each. The exit code is that of the target, always: what bragg
    could not record is said, and is no failure of the target unless --require-samples makes it one.
    """
    from bragg.cli.run_report import RunReport, empty_run_json
    from bragg.formats import finish
    from bragg.record import RecordConfig, run_target

    config = RecordConfig(**{name: value for name, value in choices.items() if value is not None})
    result = run_target(config, target, finish)
    try:
        report = RunReport.of(result)
        if as_json:
            write_json("run", report.to_json())
        else:
            say(report.lines(stream_style(sys.stderr), summary=not no_summary, every_process=verbose))
        report.check_backend(config.backend)
    except BraggError as error:
        if require_samples and result.exit_code == 0:
            raise
        if not isinstance(error, NothingRecorded):
            say(error_lines(error.message, error.hint))
        elif as_json:
            write_json("run", empty_run_json(result, error.message))
        else:
            say([stream_style(sys.stderr).warning(f"note: {error.message}")])
    return end_like(result.exit_code)
