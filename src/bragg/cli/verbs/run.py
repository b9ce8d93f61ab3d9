"""`bragg run`: record a program."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from bragg.cli.completion import counters as completed_counters
from bragg.cli.completion import programs
from bragg.cli.console import error_lines, late_hint, say, stream_style, write_json
from bragg.cli.process_end import end_like
from bragg.errors import BackendUnavailable, BraggError, NothingRecorded, UsageError
from bragg.record.config import Context, Data, Framework, Graphs, Interpret
from bragg.registry import BACKENDS

if TYPE_CHECKING:
    from bragg.cli.jobs.tallied import RunTally
    from bragg.cli.run_report import RunReport
    from bragg.record import RecordConfig, RunResult


_EPILOG = """\b
Examples:
  bragg run train.py --epochs 2
  bragg run --repeat 10 -o before train.py
  bragg run -o job/ -- torchrun --nproc-per-node 4 train.py
"""


_SAMPLING_MODES = ("continuous", "windows", "serialized")
_API_LEVELS = ("all", "sync")
# Options that may stand alone: the word after them may be the target. Alone they mean the first of their choices.
_CHOICES_OF_BARE = {"--sample": _SAMPLING_MODES, "--gpu-api": _API_LEVELS}
# Those that take any text, with what they mean alone.
_TEXT_OF_BARE = {"--instrument": ".", "--counters": "default", "--telemetry": "10"}
_USAGE_ERROR = 2  # of argparse and click
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
            if option in _TEXT_OF_BARE and _is_target(given[position + 1 :]):
                given[position] = f"{option}={_TEXT_OF_BARE[option]}"
                position += 1
                continue
            choices = _CHOICES_OF_BARE.get(option, ())
            if choices and given[position + 1 : position + 2] not in [[choice] for choice in choices]:
                given[position] = f"{option}={choices[0]}"
                position += 1
            else:
                position += 2 if option in valued else 1
        return given


def _is_target(words: list[str]) -> bool:
    """Whether words that follow a bare option are options and the target, rather than its value."""
    return len(words) < 2 or words[0].startswith("-") or shutil.which(words[0]) is not None or Path(words[0]).exists()


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A share of a whole: `3%` or `0.03`."""
    try:
        return None if value is None else float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a share; write 3% or 0.03", ctx, param) from error


def _target_checked(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The name of a GPU whose machine code can be read."""
    if value is None:
        return None
    from bragg.debug.targets import target_named

    if value == "any" or target_named(value).backend != "cuda":
        raise click.BadParameter(f"{value!r} is not a GPU whose machine code bragg reads: sm_90, sm_100 and the like")
    return value


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """A time with its unit, in s."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h)", value or "0s")
    if match is None:
        raise click.BadParameter(f"{value!r} is not a time; write 500ms, 60s, 5min or 1h")
    return float(match[1]) * _SECONDS[match[2]] if value else None


@click.command(
    cls=_RunCommand,
    epilog=_EPILOG,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] [--]",
)
@click.option(
    "-o",
    "--output",
    metavar="PATTERN",
    help="Name the profile: %s is the script, %p the pid, %r the rank, %h the host.  [%s.bragg]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing profile instead of numbering the new one.")
@click.option(
    "--backend",
    type=click.Choice(["auto", *BACKENDS]),
    help="Choose what measures; auto: the GPU if there is one.  [auto]",
)
@click.option(
    "--context",
    type=click.Choice(get_args(Context)),
    help="Record call paths of Python functions, of C/C++ functions too (native), or of scopes alone.  [python]",
)
@click.option(
    "--data",
    type=click.Choice(get_args(Data)),
    help="Keep sums by call path, or every event for a timeline too (trace).  [tree]",
)
@click.option(
    "--graphs",
    type=click.Choice(get_args(Graphs)),
    help="Record each kernel of a CUDA graph, or the graph as a whole.  [node]",
)
@click.option(
    "--gpu-api",
    type=click.Choice(_API_LEVELS),
    help="Record calls of the CUDA runtime and driver; sync: only those that wait for the GPU.  [off]",
)
@click.option(
    "--framework",
    type=click.Choice(get_args(Framework)),
    help="Record the operators of this framework; auto: of all that the program imports.  [auto]",
)
@click.option("--modules", is_flag=True, help="Record each torch.nn.Module, for bragg view --group-by module.")
@click.option("--shapes", is_flag=True, help="Add the shapes and types of tensors to PyTorch's operators.")
@click.option(
    "--regions",
    metavar="NAME[,NAME]",
    help="Record parts of training steps with PyTorch: all, or some of step, data, forward, backward, optimizer. "
    "For bragg view --group-by region.",
)
@click.option(
    "--flush-interval",
    "flush_interval_ms",
    type=int,
    metavar="MS",
    help="Write to disk this often: a killed run loses at most this much.  [1000]",
)
@click.option(
    "--tree-limit",
    "tree_limit_mb",
    type=int,
    metavar="MB",
    help="Limit the memory that call paths take in a process.  [1024]",
)
@click.option(
    "--sample-interval",
    "sample_interval_us",
    type=int,
    metavar="US",
    help="Sample the Python call path this often; 0: never.  [1000, with a GPU 10000]",
)
@click.option(
    "--sample",
    "sampling",
    type=click.Choice(_SAMPLING_MODES),
    help="Sample the instructions of kernels; continuous if no mode is given.  [off]",
)
@click.option("--sample-period", type=int, metavar="N", help="Sample each multiprocessor every 2^N cycles.  [15]")
@click.option(
    "--sample-budget",
    callback=_share,
    metavar="SHARE",
    help="Limit the cost of --sample windows to this share of the time: 3% or 0.03.  [0.03]",
)
@click.option(
    "--counters",
    metavar="[NAMES]",
    shell_complete=completed_counters,
    help="Sample hardware counters of the whole GPU: default, dram, tensor, l2, units, nvlink, pcie, names of counters "
    "or of CUPTI's metrics, separated by commas. Keeps a timeline too.",
)
@click.option(
    "--counter-interval",
    "counter_interval_us",
    type=int,
    metavar="US",
    help="Sample counters this often, instead of as often as a tenth of a core can decode.",
)
@click.option(
    "--counters-exact",
    metavar="KERNELS[,NAMES]",
    help="Count the first launches of the kernels that this regular expression finds exactly, one launch at a time; "
    "NAMES as for --counters.",
)
@click.option(
    "--counters-exact-launches",
    "exact_launches",
    type=int,
    metavar="N",
    help="Count so many launches of each kernel and shape.  [2]",
)
@click.option(
    "--telemetry",
    "telemetry_hz",
    type=float,
    metavar="[HZ]",
    help="Sample power, clocks, temperature, load and memory of the GPUs, and CPU, memory, disk and network of the "
    "process, this often: 10 times a second if no number is given. 0: never.  "
    "[long runs: what 0.1 % of the time affords]",
)
@click.option(
    "--memory",
    is_flag=True,
    help="Follow the blocks that PyTorch's allocator hands out on GPUs: who holds how much at the peak, by call path.",
)
@click.option(
    "--nccl",
    is_flag=True,
    help="Record what NCCL (2.27 or newer) reports of each collective, whoever calls it: communicator, size, "
    "algorithm, protocol, channels and time on the GPU.",
)
@click.option(
    "--no-idle",
    is_flag=True,
    help="Leave out why GPUs waited, and for which call paths: a launch then costs less.",
)
@click.option(
    "--instrument",
    metavar="[REGEX]",
    help="Put clocks into the Triton kernels whose name the regular expression finds, or into all: what their warps do "
    "and wait for, by line.",
)
@click.option(
    "--instrument-budget",
    callback=_share,
    metavar="SHARE",
    help="Let clocks make a launch longer by this share at most: 5% or 0.05.  [0.05]",
)
@click.option(
    "--instrument-buffer",
    "instrument_buffer_mb",
    type=int,
    metavar="MB",
    help="Limit the memory of the GPU for the readings of clocks.  [256]",
)
@click.option(
    "--instrument-shared",
    is_flag=True,
    help="Keep the readings of a block in shared memory until it ends, if as many blocks fit on the GPU then.",
)
@click.option(
    "--instrument-probes",
    metavar="NAME[,NAME]",
    help="Count in one launch of each kernel with clocks: all, or some of accesses (sectors per request, active "
    "lanes), branches (turns of loops), values (greatest magnitude and first NaN or Inf of stores).",
)
@click.option(
    "--rotate",
    "rotate_s",
    callback=_seconds,
    metavar="TIME",
    help="Begin a new profile after this time (60s, 5min, 1h) and write the previous one.",
)
@click.option(
    "--watch",
    "watch_s",
    callback=_seconds,
    metavar="TIME",
    help="Say which ranks have not entered a collective that others wait in for this time (30s), and where they are.",
)
@click.option("--keep", "rotate_keep", type=int, metavar="N", help="Keep only the latest N profiles of --rotate.")
@click.option("--nvtx/--no-nvtx", default=None, help="Record NVTX ranges and marks; on unless BRAGG_NVTX=0.")
@click.option(
    "--launch-metadata/--no-launch-metadata",
    default=None,
    help="Use the names and numbers of launch_metadata of Triton kernels; on by default.",
)
@click.option(
    "--kernel-code/--no-kernel-code",
    default=None,
    help="Keep the program's source and the code of its kernels in the profile; on by default.",
)
@click.option(
    "--interpret",
    type=click.Choice(get_args(Interpret)),
    help="Execute Triton kernels on the CPU; auto: if there is no GPU.  [auto]",
)
@click.option(
    "--target",
    "gpu_target",
    metavar="GPU",
    callback=_target_checked,
    help="Without a GPU: compile Triton kernels for this one, for bragg source: sm_90, sm_100 and the like.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run the program N times, for bragg diff: the profiles are %s-1.bragg to %s-N.bragg.",
)
@click.option(
    "--tally",
    is_flag=True,
    help="Keep what bragg tally counts, in memory that does not grow, and print it: calls of the GPU's API, operators, "
    "scopes, GPU work, copies.",
)
@click.option("--require-samples", is_flag=True, help="Fail with exit code 7 if nothing was recorded.")
@click.option("--as-proton", is_flag=True, help="Replace triton.profiler (Proton) by bragg.proton in the program.")
@click.option("-m", "module", is_flag=True, help="Run a module: -m package.module.")
@click.option("-v", "--verbose", is_flag=True, help="Print what each process recorded.")
@click.option("--no-summary", is_flag=True, help="Do not print the hottest call paths.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object, the last line of stdout.")
@click.argument("target", nargs=-1, type=click.UNPROCESSED, shell_complete=programs)
def run(
    target: tuple[str, ...],
    module: bool,
    verbose: bool,
    no_summary: bool,
    as_json: bool,
    repeat: int | None,
    tally: bool,
    require_samples: bool,
    **choices: Any,
) -> int:
    """Run a program and record where its time goes.

    TARGET is `script.py args…`, `-m module args…`, `pytest args…` or `-- command args…`. Options of bragg stand before
    it. Its child processes are recorded too, each into a profile of its own; workers of PyTorch's data loaders are part
    of that of their parent. The profiles of the ranks of a job go into one directory.

    The exit code is that of TARGET. If something could not be recorded, bragg says so; that is not failure unless
    --require-samples is given.
    """
    from bragg.record.launcher.memory_limit import memory_shortage

    if (shortage := memory_shortage()) is not None:
        if require_samples or repeat is not None:
            raise shortage
        return end_like(_run_unrecorded(target, shortage, as_json=as_json))
    from bragg.formats import finish
    from bragg.record import run_target

    if tally:
        from bragg.cli.jobs.tallied import tally_options

        choices = tally_options({**choices, "repeat": repeat})
        choices.pop("repeat")
    config = _config(choices)
    if repeat is not None:
        from bragg.cli.repeated_run import run_repeatedly

        return end_like(run_repeatedly(config, target, repeat, as_json=as_json))
    result = run_target(config, target, finish)
    try:
        _report(result, config, as_json=as_json, tally=tally, summary=not no_summary, every_process=verbose)
    except BraggError as error:
        if require_samples and result.exit_code == 0:
            raise
        _say_failure(error, result, as_json=as_json)
    if hint := late_hint(run, target, is_refused=result.exit_code == _USAGE_ERROR):
        say([hint])
    return end_like(result.exit_code)


def _config(choices: dict[str, Any]) -> RecordConfig:
    """What to record, by the options that were given."""
    from bragg.record import RecordConfig

    kernels, _, names = (choices.pop("counters_exact") or "").partition(",")
    choices |= {"exact_kernels": kernels or None, "exact_metrics": names or None}
    if choices["counters"] and choices["data"] is None:
        choices["data"] = "trace"
    if choices["gpu_target"]:
        _check_interpreted(choices["interpret"])
    return RecordConfig(**{name: value for name, value in choices.items() if value is not None})


def _check_interpreted(wish: str | None) -> None:
    """Whether kernels will be executed on the CPU: those that a GPU executes are compiled for it.

    Raises:
        UsageError: They will not.
    """
    from bragg.debug.host.driver import has_gpu

    if wish == "off" or (wish != "on" and has_gpu()):
        why = "--interpret off leaves it out" if wish == "off" else "this machine has a GPU"
        raise UsageError(f"--target is for kernels that bragg's interpreter executes, and {why}", hint="--interpret on")


def _report(
    result: RunResult, config: RecordConfig, *, as_json: bool, tally: bool, summary: bool, every_process: bool
) -> None:
    """Say what was recorded.

    Raises:
        BraggError: Nothing was, or not all that was to be.
    """
    from bragg.cli.run_report import RunReport

    ending: RunReport | RunTally = (report := RunReport.of(result))
    if tally:
        from bragg.cli.jobs.tallied import RunTally

        ending = RunTally(report)
    if as_json:
        write_json("run", ending.to_json())
    else:
        say(ending.lines(stream_style(sys.stderr), summary=summary, every_process=every_process))
    report.check_backend(config.backend)


def _say_failure(error: BraggError, result: RunResult, *, as_json: bool) -> None:
    """Say why there is no profile, or not all of it."""
    if not isinstance(error, NothingRecorded):
        say(error_lines(error.message, error.hint))
    elif as_json:
        notes = [*result.notes, error.message]
        write_json("run", _empty_run_json(result.exit_code, result.duration_s, len(result.captures), notes))
    else:
        hint = [f"hint: {error.hint}"] if error.hint else []
        say([stream_style(sys.stderr).warning(f"note: {error.message}"), *hint])


def _run_unrecorded(target: tuple[str, ...], reason: BackendUnavailable, *, as_json: bool) -> int:
    """Run a program as it is, and say why it is not recorded.

    Returns:
        Its exit code; negative: the signal that ended it.
    """
    from bragg.record.launcher.process import run_child
    from bragg.record.launcher.target import find_target

    found = find_target(target)
    note = f"{found.stem} is not recorded: {reason.message}"
    say([stream_style(sys.stderr).warning(f"note: {note}"), f"hint: {reason.hint}"])
    started = time.monotonic()
    exit_code = run_child(found.command, os.environ).exit_code
    if as_json:
        write_json("run", _empty_run_json(exit_code, time.monotonic() - started, 0, [note]))
    return exit_code


def _empty_run_json(exit_code: int, duration_s: float, n_processes: int, notes: list[str]) -> dict[str, Any]:
    """The same object as `RunReport.to_json` for a run without a profile; the reason is its last note."""
    return {
        "exit_code": exit_code,
        "duration_s": round(duration_s, 6),
        "profiles": [],
        "empty_processes": n_processes,
        "notes": notes,
    }
