"""Which profile a command reads."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from bragg.cli.console import ADDRESS_MARK
from bragg.cli.progress import working
from bragg.errors import BadFile, UsageError

if TYPE_CHECKING:
    from bragg.model import Profile


class _Readable(click.Path):
    """A path, or the address of a file or job that fsspec knows, which is copied until the command ends.

    `data` is `data.bragg` where there is only this, as for `bragg run -o data`.
    """

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if ctx is None or not isinstance(value, str) or ADDRESS_MARK not in value:
            path = Path(value)
            named = path.with_name(f"{path.name}.bragg") if path.name and not path.exists() else path
            return super().convert(str(named) if named.is_file() else value, param, ctx)
        from bragg.cli.jobs.remote import local_files

        copy = ctx.with_resource(local_files([value]))[0]
        ctx.meta.setdefault(_ADDRESSES, {})[copy] = value
        return copy


_ADDRESSES = "bragg.cli.profile_file.addresses"  # in a command's context: of each copy
READABLE = _Readable(path_type=Path)
readable_argument = click.argument("file", required=False, type=READABLE)


def as_named(text: object) -> str:
    """A path, or a text with paths, with the addresses that the user has named in place of their copies."""
    named = str(text)
    for copy, address in click.get_current_context().meta.get(_ADDRESSES, {}).items():
        named = named.replace(str(copy), address)
    return named


def beside(read: Path, suffix: str) -> Path:
    """The name of a file that is made of one that was read: beside it, or here where that is at an address."""
    made = read.with_suffix(suffix)
    copies = click.get_current_context().meta.get(_ADDRESSES, {})
    return Path(made.name) if any(copy in (read, *read.parents) for copy in copies) else made


def newest_profile(file: Path | None, directory: Path | None = None) -> Path:
    """The file that was named, or the profile written last; of a job that of its worst rank.

    Args:
        file: As named on the command line, which may be a directory to look in; None when it was not.
        directory: Where to look; None for the current one.

    Raises:
        UsageError: No file was named and there is none.
        BadFile: It is a job of which no profile can be read.
    """
    found = newest_profile_or_job(file, directory)
    if not found.is_dir():
        return found
    from bragg.cli.jobs.opened import one_rank

    return one_rank(found)


def newest_profile_or_job(file: Path | None, directory: Path | None = None) -> Path:
    """As `newest_profile`, for commands that take the directory of a job, too.

    Raises:
        UsageError: No file was named and there is none.
    """
    if file is not None and not file.is_dir():
        return file
    from bragg.formats.job.directory import INDEX, is_job

    if file is not None and is_job(file):
        return file
    directory = file or directory
    where_to_look = directory or Path()
    profiles = [*where_to_look.glob("*.bragg"), *(index.parent for index in where_to_look.glob(f"*/{INDEX}"))]
    newest = max(profiles, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        where = f"in {file}" if file else "here"
        raise UsageError(f"there is no .bragg file {where}", hint=_hint(directory or Path()))
    return newest


def loaded(path: Path, *, trace: bool = True) -> Profile:
    """A profile, and on a terminal that it is being read.

    Args:
        path: The file.
        trace: False leaves the slices out.

    Raises:
        BadFile: It cannot be read.
        NothingRecorded: It holds no measurement.
    """
    from bragg import formats

    if not path.exists() and (unfinished := _unfinished_run(path.parent)):
        raise BadFile(f"there is no {path}", hint=unfinished)
    with working(f"Reading {path}"):
        return formats.load(path, trace=trace)


def _hint(directory: Path) -> str:
    return _unfinished_run(directory) or "Record one with: bragg run script.py; or try: bragg demo"


def _is_recovered(capture: Path) -> bool:
    return (capture.parent.parent / recovered_name(capture)).exists()


def recovered_name(capture: Path) -> str:
    """The name that `bragg recover` gives the profile of a capture."""
    return f"recovered-{capture.stem}.bragg"


def _unfinished_run(directory: Path) -> str:
    """How to see a run that has captures in a directory, first one that continues; empty: there is none."""
    from bragg.formats.captured.writer import is_being_written

    captures = [path for path in sorted(directory.glob(".bragg-*/*.part")) if not _is_recovered(path)]
    if running := next(filter(is_being_written, captures), None):
        return f"A run is still running here. So far: bragg view {quote(str(running))}"
    return f"A run has left a capture here: bragg recover {quote(str(captures[0].parent))}" if captures else ""
