"""`bragg export`: a profile for another tool."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from bragg.cli.completion import writable_formats
from bragg.cli.console import say, write_bytes, write_json
from bragg.cli.jobs.opened import one_rank
from bragg.cli.output_file import refuse_existing
from bragg.cli.profile_file import as_named, beside, loaded, newest_profile_or_job, readable_argument
from bragg.cli.progress import working
from bragg.errors import UsageError
from bragg.registry import FORMATS

if TYPE_CHECKING:
    from bragg.model import Profile


_STDOUT = Path("-")
_PERFETTO = "perfetto"
_LARGE_BYTES = 50_000_000
_EPILOG = """\b
Examples:
  bragg export run.bragg -f perfetto   timelines: bragg run --data trace
  bragg export train.job -f perfetto   all ranks on one timeline
  bragg export train.bragg -f collapsed -o - | flamegraph.pl > flame.svg
"""


class _FormatOption(click.Option):
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from bragg.formats import writable

        *names, last = writable()
        self.help = f"Choose {', '.join(names)} or {last}."
        return super().get_help_record(ctx)


@click.command(epilog=_EPILOG)
@readable_argument
@click.option(
    "-f",
    "--format",
    "format_name",
    metavar="FORMAT",
    shell_complete=writable_formats,
    cls=_FormatOption,
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="Name the new file; -: stdout.")
@click.option(
    "--rank",
    metavar="N[,N]",
    help="Choose ranks of a job: numbers, worst, median, best, or all; only perfetto takes several.",
)
@click.option(
    "--gpu-stages", is_flag=True, help="Fill Perfetto's own tables of GPUs too; kernels are shown twice then."
)
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON object.")
def export(
    file: Path | None,
    format_name: str | None,
    output: Path | None,
    rank: str | None,
    gpu_stages: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write FILE, a profile or the directory of a job, in the format of another tool.

    Of a job, perfetto holds the timelines of all ranks, or of the worst, median and best of each role if there are
    more than 16; other formats hold the worst rank.

    Without --format, the suffix of OUT decides. Without --output, OUT is FILE with the suffix of the format.
    """
    from bragg.cli.jobs.exported import export_ranks

    path = newest_profile_or_job(file)
    if format_name is not None and format_name not in list(FORMATS):
        raise UsageError(f"unknown format {format_name!r}", hint=_known())
    name = format_name or _format_of(output)
    if gpu_stages and (name != _PERFETTO or output == _STDOUT):
        raise UsageError("--gpu-stages is of Perfetto's files", hint="Add -f perfetto, and name a file with -o")
    if rank is not None and not path.is_dir():
        raise UsageError(f"{as_named(path)} is the profile of one process", hint="Give the directory of a job")
    if as_json and output == _STDOUT:
        raise UsageError("--json and the export cannot both be on stdout", hint="Name a file with -o")
    of_all_ranks = path.is_dir() and name == _PERFETTO and output != _STDOUT
    if path.is_dir() and not of_all_ranks:
        path = one_rank(path, rank)
    if output == _STDOUT:
        _write_to_stdout(loaded(path), name)
        return
    target = output or beside(path, FORMATS[name].suffix)
    refuse_existing(target, force)
    n_ranks = None
    if of_all_ranks:
        n_ranks = export_ranks(path, rank, target, has_stages=gpu_stages)
    else:
        _write(path, name, target, has_stages=gpu_stages)
    _say_written(target, name, n_ranks, as_json=as_json)


def _write(path: Path, name: str, target: Path, *, has_stages: bool) -> None:
    from bragg import formats
    from bragg.formats.perfetto import trace as perfetto

    profile = loaded(path)
    with working(f"Writing {target}"):
        if has_stages:
            perfetto.write(profile, target, has_stages=True)
        else:
            formats.export(profile, name, target)


def _say_written(target: Path, name: str, n_ranks: int | None, *, as_json: bool) -> None:
    from bragg.views.text.units import bytes_text

    files = target.iterdir() if target.is_dir() else [target]
    size_bytes = sum(file.stat().st_size for file in files)
    if as_json:
        told = {} if n_ranks is None else {"ranks": n_ranks}
        write_json("export", {"file": str(target), "format": name, "size_bytes": size_bytes, **told})
    else:
        next_step = FORMATS[name].next_step.format(file=quote(str(target)))
        if FORMATS[name].compresses and size_bytes > _LARGE_BYTES and target.suffix != ".gz":
            next_step += f"; much smaller: -o {quote(f'{target}.gz')}, or -f {_PERFETTO}"
        say([f"Wrote {target} ({bytes_text(size_bytes)}): {FORMATS[name].description}. Next: {next_step}"])


def _write_to_stdout(profile: Profile, format_name: str) -> None:
    """Write a profile to stdout, when all of it is there: formats write files."""
    from bragg import formats

    with TemporaryDirectory(prefix="bragg-") as folder:
        file = Path(folder) / "export"
        formats.export(profile, format_name, file)
        if file.is_dir():
            raise UsageError(f"{format_name} is a directory, which stdout cannot be", hint="Name it with -o")
        write_bytes(file.read_bytes())


def _format_of(output: Path | None) -> str:
    """The format whose suffix a file name has, the longest one.

    Raises:
        UsageError: There is no name, or no format with its suffix.
    """
    if output is None:
        raise UsageError("neither format nor output is given", hint=_known())
    fitting = [
        name
        for name, format_ in FORMATS.items()
        if format_.write and output.name.removesuffix(".gz" * format_.compresses).endswith(format_.suffix)
    ]
    if not fitting:
        raise UsageError(f"no format has the suffix of {output.name}", hint=_known())
    return max(fitting, key=lambda name: len(FORMATS[name].suffix))


def _known() -> str:
    """The formats to choose from: those that can be written."""
    from bragg.formats import writable

    return f"Choose one with -f: {', '.join(writable())}"
