"""Reading and writing profiles: one file per format, found through the registry."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from bragg.errors import BadFile, NothingRecorded, UsageError
from bragg.formats.files import first_bytes
from bragg.formats.format import Format, unknown_format
from bragg.formats.job.profiles import JobProfiles
from bragg.garbage import no_collection
from bragg.model import Profile
from bragg.registry import FORMATS

__all__ = ["Format", "JobProfiles", "export", "finish", "load", "load_job", "read_capture", "writable"]

# Bytes at the start of a file that identify its format.
_N_FIRST_BYTES = 1 << 16


def load(path: str | Path, *, trace: bool = True) -> Profile:
    """Read a profile from a file of any readable format, identified by its first bytes.

    Args:
        path: The file.
        trace: False leaves the slices out, which views of the tree do not need.

    Raises:
        BadFile: The file is missing, damaged beyond use, or of no known format.
        NothingRecorded: The file holds no measurement.
    """
    path = Path(path)
    if path.is_dir():
        raise BadFile(f"cannot read {path}: Is a directory", hint="Load the directory of a job: bragg.load_job")
    start, content = first_bytes(path, _N_FIRST_BYTES)
    for format_ in FORMATS.values():
        if format_.read is not None and format_.begins(start, content):
            with no_collection():  # which took 40 % of the time for a trace of 200,000 events
                profile: Profile = format_.read(path, trace=trace)
            return profile
    if not content and path.suffix == ".part":
        raise NothingRecorded(f"{path} holds no measurement", hint="Nothing was written to it yet")
    raise unknown_format(path)


def load_job(directory: str | Path, *, trace: bool = True) -> JobProfiles:
    """The profiles of a job by rank: `load_job("train.job")[3]` is that of rank 3.

    Args:
        directory: Written by `bragg run -- torchrun …`.
        trace: False leaves the slices out, which views of the tree do not need.

    Raises:
        BadFile: It is not the directory of a job, or no profile in it can be used.
    """
    from bragg.formats.job.directory import read_job

    return JobProfiles(read_job(Path(directory)), partial(load, trace=trace))


def writable() -> list[str]:
    """Names of the formats that can be written."""
    return [name for name, format_ in FORMATS.items() if format_.write]


def export(profile: Profile, format_name: str, path: str | Path) -> None:
    """Write a profile in a format of the registry.

    Raises:
        UsageError: There is no such format, or the profile lacks what the format shows.
        BadFile: The file cannot be written.
    """
    format_ = FORMATS[format_name]
    if format_.write is None:
        hint = f"Choose one of: {', '.join(writable())}"
        raise UsageError(f"format {format_name!r} can be read but not written", hint=hint)
    format_.write(profile, Path(path))


def finish(capture_path: str | Path, path: str | Path, *, exit_code: int | None = None) -> Profile:
    """Turn the capture of a run into a `.bragg` file, in memory that does not grow with the length of the trace.

    The profile has the texts of its kernels, unless the run was asked to keep none.

    Args:
        capture_path: The capture.
        path: The file; it is overwritten.
        exit_code: Of the process, which META then has; negative: the signal that ended it. None: not known.

    Returns:
        The profile without its slices.

    Raises:
        BadFile: The capture cannot be used, or the file cannot be written.
        NothingRecorded: The capture holds no measurement.
    """
    from bragg.code.reading import CodeWish
    from bragg.formats import bragg, capture
    from bragg.formats.job import summary_slices

    recording = capture.open_capture(Path(capture_path), CodeWish.TEXTS)
    profile, needed = recording.profile, summary_slices.needed_of(recording)
    if exit_code is not None:
        profile = replace(profile, meta={**profile.meta, "exit_code": exit_code})
    summarized = None if needed is None else replace(profile, slices=needed)
    bragg.write(profile, Path(path), slices=recording.slice_blocks(), summarized=summarized)
    return profile


def read_capture(path: str | Path) -> Profile:
    """Read a capture, which may still grow, with source lines but without the texts, which take seconds to collect.

    Raises:
        BadFile: The capture cannot be used.
        NothingRecorded: It holds no measurement.
    """
    from bragg.code.reading import CodeWish
    from bragg.formats import capture

    return capture.read(Path(path), code=CodeWish.LINES)
