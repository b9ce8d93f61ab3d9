"""`bragg source`: the code of a kernel, with the samples of its instructions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.completion import kernels_and_files
from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.profile_file import loaded, newest_profile
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.analyze.kernel_choice import KernelChoice
    from bragg.analyze.program_lines import ProgramFile
    from bragg.model import Profile


_SOURCE = "python"
_MAX_NAMES = 5
_PROFILES = frozenset({".bragg", ".part"})
_SMALL_BYTES = 8_000_000  # a timeline of 2 million slices: 0.5 s
_EPILOG = """\b
Examples:
  bragg source train.bragg matmul
  bragg source train.bragg train.py:52
  bragg source after.bragg matmul --before before.bragg
"""


@click.command(epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.argument("kernel", required=False, shell_complete=kernels_and_files)
@click.option(
    "--ir",
    type=click.Choice([_SOURCE, "ttir", "ttgir", "llir", "ptx", "sass"]),
    default=_SOURCE,
    help="Show the source, or a stage of what the compiler made of it.  [python]",
)
@click.option("--remarks", is_flag=True, help="Compile it again, and show what Triton's compiler remarks on lines.")
@click.option(
    "--before",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Put it beside the kernel of this profile: what changed, line by line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def source(file: Path | None, kernel: str | None, ir: str, remarks: bool, before: Path | None, as_json: bool) -> None:
    """Show the code of KERNEL in FILE, and where its warps waited; or a file of the program, and where its time went.

    FILE may be left out: it is the newest profile in this directory then. KERNEL is a name, with or without its
    specialization, or a regular expression; or a file of the program, `train.py`, or a line of it, `train.py:52`. The
    default is the hottest kernel, and where none has code the main file of the program.
    """
    from bragg.analyze.bundle.files import bundle_of
    from bragg.analyze.bundle.remarks import remarks_on
    from bragg.analyze.kernel_choice import choose_kernel
    from bragg.analyze.kernel_summary import summary_of
    from bragg.analyze.report import findings_of
    from bragg.analyze.source_lines import annotate
    from bragg.code.source_map import Stage
    from bragg.views.terminal.source_code.kernel_source import source_json, source_lines
    from bragg.views.text.kernel_summary import summary_json, summary_lines
    from bragg.views.text.units import count_text

    if before is not None and (remarks or ir != _SOURCE):
        raise UsageError("--before compares the source, so it takes no --ir and no --remarks")
    file, kernel = _file_and_kernel(file, kernel)
    profile = loaded(file, trace=False)
    is_of_kernel = before is not None or remarks or ir != _SOURCE
    if not is_of_kernel and (place := _program_place(profile, kernel)):
        _show_program(file, profile, *place, as_json=as_json)
        return
    stage = None if ir == _SOURCE else Stage(ir)
    chosen = choose_kernel(profile, kernel)
    if before is not None:
        _compare(before, file, profile, chosen, as_json=as_json)
        return
    code, summary = annotate(profile, chosen, stage), summary_of(profile, chosen)
    told = remarks_on(bundle_of(profile, chosen.name)) if remarks else None
    if as_json:
        of_compiler = {"remarks": asdict(told)} if told else {}
        write_json("source", {"file": str(file), **source_json(code, stage), **summary_json(summary), **of_compiler})
    else:
        found = findings_of(_with_timeline(file, profile))
        write_lines(source_lines(code, stage, stream_style(sys.stdout), found, summary_lines(summary), told))
    if chosen.others:
        verb = "has" if len(chosen.others) == 1 else "have"
        names = ", ".join(chosen.others[:_MAX_NAMES]) + (", …" if len(chosen.others) > _MAX_NAMES else "")
        say([f"{count_text(len(chosen.others), 'more kernel')} {verb} this name: {names}"])
    if summary.time_ns and not code.total.count and not code.clock_cycles:
        say(["Next: bragg run --sample, which shows at each line what its warps wait for"])


def _with_timeline(file: Path, profile: Profile) -> Profile:
    """A profile with its timeline, which findings are of, unless that takes long to read."""
    return loaded(file) if file.is_file() and file.stat().st_size < _SMALL_BYTES else profile


def _program_place(profile: Profile, wanted: str | None) -> tuple[ProgramFile, int] | None:
    """The file of the program that is meant, and the line in it, 0: all of it; None: a kernel is meant."""
    from bragg.analyze.kernel_choice import has_shown_kernel
    from bragg.analyze.program_lines import program_file, program_files
    from bragg.views.text.units import count_text

    if wanted is None:
        main = next(iter(program_files(profile)), None)
        program = None if main is None or has_shown_kernel(profile) else program_file(profile, main)
        return None if program is None else (program, 0)
    name, _, line = wanted.rpartition(":")
    name, at = (name, int(line)) if name and line.isdecimal() else (wanted, 0)
    program = program_file(profile, name)
    if program is not None and at > len(program.lines):
        raise UsageError(f"{name} has {count_text(len(program.lines), 'line')}", hint=f"For example: {name}:1")
    return None if program is None else (program, at)


def _show_program(file: Path, profile: Profile, program: ProgramFile, at: int, *, as_json: bool) -> None:
    from bragg.analyze.report import answered
    from bragg.views.terminal.source_code.program_source import program_json, program_lines
    from bragg.views.text.analysis_text import LEAST_GAIN

    found = answered(_with_timeline(file, profile)).worth(LEAST_GAIN)
    if as_json:
        write_json("program", {"file": str(file), **program_json(program, at, found)})
    else:
        write_lines(program_lines(program, at, found, stream_style(sys.stdout)))


def _compare(before: Path, file: Path, profile: Profile, chosen: KernelChoice, *, as_json: bool) -> None:
    from bragg.analyze.comparing.kernel_change import kernel_change
    from bragg.views.text.kernel_change_text import kernel_change_json, kernel_change_lines

    change = kernel_change(loaded(before, trace=False), profile, chosen)
    if as_json:
        write_json("source", {"file": str(file), "file_before": str(before), **kernel_change_json(change)})
    else:
        write_lines(kernel_change_lines(change, stream_style(sys.stdout)))


def _file_and_kernel(file: Path | None, kernel: str | None) -> tuple[Path, str | None]:
    """What is meant where one word stands alone: a kernel of the newest profile, unless it names a file."""
    is_program = file is not None and file.suffix == ".py"
    if file is None or kernel is not None or file.suffix in _PROFILES or (file.exists() and not is_program):
        return newest_profile(file), kernel
    return newest_profile(None), str(file)
