"""`bragg recover`: profiles of what a killed run left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from bragg.cli.console import error_lines, say, write_json
from bragg.cli.profile_file import recovered_name
from bragg.cli.progress import working
from bragg.errors import BadFile, BraggError, UsageError

if TYPE_CHECKING:
    from bragg.cli.jobs.recorded import RecordedJob
    from bragg.model import Profile


_EPILOG = """\b
Examples:
  bragg recover
  bragg recover .bragg-x1y2z3
  bragg recover .bragg-x1y2z3/4711.part -o train.bragg
"""


@click.command(epilog=_EPILOG)
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Name the profile, or a directory for several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON object.")
def recover(source: Path | None, output: Path | None, as_json: bool) -> None:
    """Turn SOURCE, a capture (.part) or a directory of captures, into profiles.

    Without SOURCE, the captures of killed runs in this directory are taken: those in .bragg-*.
    The captures stay where they are. Existing profiles are not overwritten: the new ones are numbered. Profiles of the
    ranks of a job go into one directory, as bragg run writes it: OUT, or SOURCE if its .bragg-* was taken.
    """
    captures = _captures(source or Path())
    written: list[tuple[Path, Profile]] = []
    failures: list[BraggError] = []
    for capture in captures:
        try:
            written.append(_finish(capture, _wanted_name(capture, output, len(captures))))
        except BraggError as error:
            failures.append(error)
    if not written:
        raise failures[0]
    for failure in failures:
        say(error_lines(failure.message, failure.hint))
    job = _as_job(written, source, output) if len(captures) > 1 else None
    _report(job.profiles if job else written, job, as_json)
    if not as_json and not failures and (left := _used_up(captures)):
        say([f"No longer needed: rm -r {' '.join(quote(str(directory)) for directory in left)}"])


def _captures(source: Path) -> list[Path]:
    """The captures at a path, at least one.

    Raises:
        BadFile: There is none.
    """
    if not source.is_dir():
        return [source]
    captures = sorted(source.glob("*.part")) or sorted(source.glob(".bragg-*/*.part"))
    if not captures:
        raise BadFile(
            f"there is no .part file in {source} or a .bragg-* directory in it",
            hint="Captures are where the run was started, or beside its -o",
        )
    return captures


def _used_up(captures: Sequence[Path]) -> list[Path]:
    """Directories of runs that hold no other captures."""
    directories = sorted({capture.parent for capture in captures})
    return [path for path in directories if path.name.startswith(".bragg-") and set(path.glob("*.part")) <= {*captures}]


def _wanted_name(capture: Path, output: Path | None, n_captures: int) -> Path:
    if output is None or output.is_dir():
        return (output or Path()) / recovered_name(capture)
    if n_captures > 1:
        raise UsageError(f"there are {n_captures} captures but one output", hint="Give a directory with -o")
    return output


def _finish(capture: Path, wanted: Path) -> tuple[Path, Profile]:
    """Write the profile of a capture beside its place, and give it a name that is free when it is complete.

    Raises:
        BadFile: The capture cannot be used, or the profile cannot be written.
        NothingRecorded: The capture holds no measurement.
    """
    from bragg.formats import finish
    from bragg.record.output import give_free_name

    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".recover-", dir=wanted.parent) as beside:
            unnamed = Path(beside, wanted.name)
            with working(f"Reading {capture}"):
                profile = finish(capture, unnamed)
            return give_free_name(unnamed, wanted), profile
    except OSError as error:
        raise BadFile(f"cannot write {wanted}: {error.strerror}", hint="Choose another place with -o") from error


def _as_job(written: list[tuple[Path, Profile]], source: Path | None, output: Path | None) -> RecordedJob | None:
    """The directory of a job, if the profiles are of ranks.

    Raises:
        BadFile: It cannot be written.
    """
    from bragg.cli.jobs.recorded import as_job
    from bragg.record import RecordConfig

    is_beside = source is not None and next(source.glob("*.part"), None) is None
    directory = output or (source if is_beside else None)
    return as_job(written, RecordConfig(output=f"{directory}/" if directory else "%s.bragg"), "recovered")


def _report(written: list[tuple[Path, Profile]], job: RecordedJob | None, as_json: bool) -> None:
    from bragg.cli.jobs.recorded import job_line
    from bragg.views.text.run_facts import RunFacts
    from bragg.views.text.units import bytes_text

    runs = {path: RunFacts(profile.meta) for path, profile in written}
    if as_json:
        profiles = [
            {"file": str(path), "completeness": run.completeness.word, "warnings": list(run.warnings())}
            for path, run in runs.items()
        ]
        write_json("recover", {**({"job": str(job.directory)} if job else {}), "profiles": profiles})
        return
    if job is not None:
        warnings = [f"{path}: {warning}" for path, run in runs.items() for warning in run.warnings()]
        say([*job.notes, *warnings, job_line(job.directory, list(runs))])
        return
    for path, run in runs.items():
        lines = [f"{path}: {warning}" for warning in run.warnings()]
        what = ", ".join(filter(None, [bytes_text(path.stat().st_size), run.cost]))
        say([*lines, f"Wrote {path} ({what}). Next: bragg view {quote(str(path))}"])
