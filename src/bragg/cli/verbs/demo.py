"""`bragg demo`: record and show a small program."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.process_end import end_like

if TYPE_CHECKING:
    from bragg.cli.run_report import RunReport

__all__ = ["demo"]

_DATA = Path(__file__).parents[2] / "data"
_SAMPLE = _DATA / "sample-h100.bragg"
_LINES = 25
_EPILOG = """\b
Examples:
  bragg demo
  bragg demo -o spirals.bragg
"""


@click.command(epilog=_EPILOG)
@click.option("-o", "--output", default="demo.bragg", show_default=True, metavar="PATTERN", help="Name the profile.")
@click.option("--json", "as_json", is_flag=True, help="Print what was recorded as one JSON object.")
def demo(output: str, as_json: bool) -> int:
    """Record and show a small program.

    With a GPU, PyTorch and Triton it trains a network there; elsewhere it does so in plain Python, and a profile that
    was recorded on a GPU is shown too. Without a recorder only that profile is shown.
    """
    if find_spec("bragg._core") is None:
        say([f"$ bragg view {_SAMPLE}"])
        _show_sample()
        say(["", "This bragg has no recorder. Next: bragg report FILE; bragg doctor"])
        return 0
    from bragg.cli.run_report import RunReport
    from bragg.record import RecordConfig, run_target

    script = _script()
    if not as_json:
        say([f"$ bragg run -o {output} {script}"])
    result = run_target(RecordConfig(output=output), [str(script)])
    report = RunReport.of(result)
    sample = _SAMPLE if _SAMPLE.exists() and script.name == "demo_cpu.py" else None
    if as_json:
        write_json("demo", {**report.to_json(), "sample": str(sample) if sample else None})
    else:
        _show(report, sample)
    return end_like(result.exit_code)


def _script() -> Path:
    """The program for this machine, without initialising any device."""
    from bragg.record.backends import choose_backend

    has_frameworks = all(find_spec(name) is not None for name in ("torch", "triton"))
    has_gpu = choose_backend("auto", os.environ).name != "cpu"
    return _DATA / ("demo_gpu.py" if has_gpu and has_frameworks else "demo_cpu.py")


def _show(report: RunReport, sample: Path | None) -> None:
    from bragg.cli.verbs.view import profile_lines
    from bragg.views.terminal.view_options import ViewOptions

    path, profile = report.main
    talk, style = stream_style(sys.stderr), stream_style(sys.stdout)
    say([*report.lines(talk, summary=True, every_process=False), "", f"$ bragg view {path}"])
    write_lines(profile_lines(profile, str(path), ViewOptions(max_lines=_LINES), style))
    if sample is not None:
        say(["", f"A profile that was recorded on a GPU; all of it: bragg view {sample}"])
        _show_sample()
    name = quote(str(path))
    say(["", f"Next: bragg view --flat {name}; bragg report {name}; bragg run your_script.py; bragg doctor"])


def _show_sample() -> None:
    from bragg import formats
    from bragg.views.terminal.story import story_lines

    write_lines(story_lines(formats.load(_SAMPLE), stream_style(sys.stdout)))
