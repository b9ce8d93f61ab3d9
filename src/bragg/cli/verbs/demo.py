"""`bragg demo`: record and show a small program."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from bragg import formats
from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.process_end import end_like
from bragg.data.sample import CAN_UNPACK, SAMPLE, sample
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.cli.run_report import RunReport


_DATA = Path(__file__).parents[2] / "data"
# Beside the package where it is installed, at the root of a checkout.
_EXAMPLES = next((each for each in (_DATA / "examples", _DATA.parents[2] / "examples") if each.is_dir()), None)
_LINES = 12
_EPILOG = """\b
Examples:
  bragg demo
  bragg demo --files      programs to record, and a profile of a GPU
"""


@click.command(epilog=_EPILOG)
@click.option("-o", "--output", default="demo.bragg", show_default=True, metavar="PATTERN", help="Name the profile.")
@click.option("--files", is_flag=True, help="Copy the examples of the tutorials and the sample here, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print what was recorded as one JSON object.")
def demo(output: str, files: bool, as_json: bool) -> int:
    """Record a small program, which is written here, and show what makes it slow.

    With a GPU, PyTorch and Triton it trains a network there; elsewhere it does so in plain Python, and a profile that
    was recorded on a GPU is shown too. Without a recorder only that profile is shown.
    """
    if files:
        say([f"Wrote {', '.join(_copied(Path()))}"])
        if not CAN_UNPACK:
            say([f"{SAMPLE} is left out: this Python was built without liblzma, which unpacks it"])
        return 0
    if find_spec("bragg._core") is None:
        if CAN_UNPACK:
            say(["A profile that was recorded on a GPU:"])
            _show_sample()
        say(["", "bragg has no recorder for this Python: it can show profiles and debug Triton kernels (bragg doctor)"])
        say([f"Next: bragg demo --files; bragg view {SAMPLE}; bragg report {SAMPLE}"])
        return 0
    from bragg.cli.run_report import RunReport
    from bragg.record import RecordConfig, run_target

    script = _written(_program())
    if not as_json:
        say([f"$ bragg run -o {output} {script}"])
    result = run_target(RecordConfig(output=output), [str(script)])
    report = RunReport.of(result)
    if as_json:
        write_json("demo", report.to_json())
    else:
        _show(report, with_sample=CAN_UNPACK and script.name == "demo_cpu.py")
    return end_like(result.exit_code)


def _copied(directory: Path) -> list[str]:
    """Copy the example programs and the sample; the names of what was copied.

    Raises:
        UsageError: A file or directory of that name is there.
    """
    names = [*([_EXAMPLES.name] if _EXAMPLES else []), *([SAMPLE] if CAN_UNPACK else [])]
    for name in names:
        if (directory / name).exists():
            raise UsageError(f"{name} is here already", hint="Run bragg demo --files in another directory")
    if _EXAMPLES:
        shutil.copytree(_EXAMPLES, directory / _EXAMPLES.name, ignore=shutil.ignore_patterns("__pycache__"))
    if CAN_UNPACK:
        formats.export(sample(), "bragg", directory / SAMPLE)
    return names


def _written(program: Path) -> Path:
    """The program in this directory: the lines of a file of the package are no lines of a user.

    Raises:
        UsageError: Another one is there.
    """
    here, text = Path(program.name), program.read_text(encoding="utf-8")
    if here.exists() and here.read_text(encoding="utf-8") != text:
        hint = f"Record it: bragg run {here}; or run bragg demo in another directory"
        raise UsageError(f"{here} is here already, and is another program", hint=hint)
    here.write_text(text, encoding="utf-8")
    return here


def _program() -> Path:
    """The program for this machine, without initialising any device."""
    from bragg.record.backends import choose_backend

    has_frameworks = all(find_spec(name) is not None for name in ("torch", "triton"))
    has_gpu = choose_backend("auto", os.environ).name != "cpu"
    return _DATA / ("demo_gpu.py" if has_gpu and has_frameworks else "demo_cpu.py")


def _show(report: RunReport, *, with_sample: bool) -> None:
    from bragg.views.terminal.tree_text import tree_lines
    from bragg.views.terminal.tree_view import tree_view
    from bragg.views.terminal.view_options import ViewOptions

    path, profile = report.main
    talk, style = stream_style(sys.stderr), stream_style(sys.stdout)
    say([*report.lines(talk, summary=True, every_process=False), "", f"The call tree; all of it: bragg view {path}"])
    write_lines(tree_lines(tree_view(profile, ViewOptions(max_lines=_LINES)), style))
    if with_sample:
        say(["", f"A profile that was recorded on a GPU; all of it: bragg demo --files, then bragg view {SAMPLE}"])
        _show_sample()
    name = quote(str(path))
    kernels = "Bugs of Triton kernels: bragg demo --files, then bragg check examples/debug/four_bugs.py"
    say(["", *([kernels] if find_spec("triton") else [])])
    say([f"Next: bragg source {name}; bragg report {name}; bragg run your_script.py; bragg doctor"])


def _show_sample() -> None:
    from bragg.views.terminal.story import story_lines

    write_lines(story_lines(sample(), stream_style(sys.stdout)))
