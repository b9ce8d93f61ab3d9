"""The command `bragg`: runs a verb and turns what goes wrong into one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

import bragg
from bragg.cli.console import error_lines, say, write_lines
from bragg.cli.verbs import VerbGroup
from bragg.errors import BraggError

_COMPLETION = "_BRAGG_COMPLETE"
_INTERNAL_ERROR = 1
_USAGE_ERROR = 2
_INTERRUPTED = 130
# Options that other profilers have, and ours.
_OPTIONS_ELSEWHERE = {
    "--by": "--group-by",
    "--capture-memory": "--memory",
    "--cuda-graph-trace": "--graphs",
    "--force-overwrite": "--force",
    "--gpu-metrics-devices": "--counters",
    "--kernel-name": "--counters-exact",
    "--limit": "--lines",
    "--max-step": "--gate step=30ms",
    "--metrics": "--counters",
    "--name": "--output",
    "--native": "--context native",
    "--out": "--output",
    "--profile-memory": "--memory",
    "--rate": "--sample-interval",
    "--record-shapes": "--shapes",
    "--section": "--counters-exact",
    "--set": "--counters",
    "--timeline": "--data trace",
    "--top": "--lines",
    "--trace": "--data trace",
    "--with-modules": "--modules",
    "--with-stack": "--context python",
}
# What is a command of its own here.
_COMMANDS_ELSEWHERE = {"--flame": "bragg report", "--html": "bragg report", "--stats": "bragg view --flat"}
_EPILOG = """\b
Examples:
  bragg run train.py
  bragg view train.bragg

\b
Exit codes: 0 fine, 1 bragg failed, 2 usage, 3 findings, 4 environment,
5 limit exceeded, 6 bad file, 7 nothing recorded; run: that of the program.
"""


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.version_option(bragg.__version__, message="bragg %(version)s")
@click.pass_context
def command_line(context: click.Context) -> None:
    """Find where the time of a GPU program goes: Python, framework, kernel."""
    if context.invoked_subcommand is None:
        from bragg.cli.welcome import welcome_lines

        write_lines(welcome_lines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        arguments: Without the program's name; None takes those of this process.

    Returns:
        The exit code; `bragg --help` lists them.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started this process
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):  # not where another program put its own in place
            stream.reconfigure(errors="backslashreplace")
    if _COMPLETION in os.environ:
        import bragg.cli.completion  # noqa: F401  # what is registered there writes the script of a shell
    try:
        code = command_line.main(
            None if arguments is None else list(arguments), prog_name="bragg", standalone_mode=False
        )
    except BraggError as error:
        return _report(error.message, error.hint, error.exit_code)
    except click.Abort:
        return _INTERRUPTED
    except click.ClickException as error:
        return _report(_usage_message(error), _usage_hint(error), _USAGE_ERROR)
    except Exception as error:  # noqa: BLE001
        from bragg.record.launcher.memory_limit import memory_shortage

        if isinstance(error, ImportError | MemoryError) and (shortage := memory_shortage()) is not None:
            return _report(shortage.message, shortage.hint, shortage.exit_code)
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _report(f"bragg failed: {text}", "BRAGG_LOG=debug shows where; please report it", _INTERNAL_ERROR)
    return code if isinstance(code, int) else 0


def _report(message: str, hint: str, exit_code: int) -> int:
    if os.environ.get("BRAGG_LOG") == "debug":
        traceback.print_exc()
    say(error_lines(message, hint))
    return exit_code


def _usage_message(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption) and (meant := _meant(error)):
        return f"{error.message} Did you mean {meant!r}?"
    return error.format_message()


def _meant(error: click.NoSuchOption) -> str:
    """What an option of another profiler is called here; empty: not known."""
    name = error.option_name.replace("_", "-")
    option = _OPTIONS_ELSEWHERE.get(name, "")
    ours = (each for each in error.ctx.command.params if option.partition(" ")[0] in each.opts) if error.ctx else ()
    return option if any(ours) else _COMMANDS_ELSEWHERE.get(name, "")


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context and error.message.startswith("Got unexpected extra argument"):
        return f"Quote a name with spaces; bragg diff compares two files; all options: {context.command_path} --help"
    if context and isinstance(error, click.NoSuchOption) and context.command.name == "run" and not _meant(error):
        return f"Options of your program stand after it: bragg run train.py {error.option_name}; of bragg run: --help"
    return f"Try: {context.command_path} --help" if context else ""
