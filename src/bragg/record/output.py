"""Names of profiles: patterns, ranks, numbering; and whether they can be written, asked before the target starts."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bragg.errors import NothingRecorded, RecordingFailed, UsageError

if TYPE_CHECKING:
    from bragg.model import Profile


class Finisher(Protocol):
    """Turns a capture into a profile at a path; raises NothingRecorded or BadFile."""

    def __call__(self, capture_path: Path, path: Path, /, *, exit_code: int | None = None) -> Profile:
        """META has the exit code of the process if it is known; negative: the signal that ended it."""
        ...


# Reads a capture, which may still grow; raises NothingRecorded or BadFile.
Loader = Callable[[Path], "Profile"]

MINIMUM_FREE_BYTES = 16 << 20  # A tree capture stays below this; a trace says when it fills the disk.
_TOKENS = "hprs"
_TOKEN = re.compile(r"%(.?)")


@dataclass(frozen=True)
class Producer:
    """The process that a profile is of.

    Attributes:
        stem: Name of the target without directory and suffix.
        pid: Its process id.
        rank: Its rank in a distributed job; None when it is alone.
        host: Name of its machine.
    """

    stem: str
    pid: int
    rank: int | None
    host: str


def keep_latest(files: MutableMapping[int, Path], keep: int | None) -> None:
    """Remove the oldest files beyond those to keep; None keeps all.

    Args:
        files: By number, the oldest has the lowest; what is removed leaves it.
        keep: How many stay.
    """
    while keep is not None and len(files) > keep:
        files.pop(min(files)).unlink(missing_ok=True)


def phase_path(profile: Path, phase: int) -> Path:
    """The file of one phase, beside the profile of all: `train.bragg` -> `train.part_3.bragg`."""
    return profile.with_name(f"{profile.stem}.part_{phase}{profile.suffix}")


def check_pattern(pattern: str) -> None:
    """Check the tokens of an output pattern.

    Raises:
        UsageError: It is empty or has an unknown token.
    """
    if not pattern:
        raise UsageError("the output name is empty")
    for token in _TOKEN.findall(pattern):
        if not token or token not in _TOKENS + "%":
            raise UsageError(
                f"unknown token {'%' + token!r} in output name {pattern!r}",
                hint="Known: %s script, %p process id, %r rank, %h host, %% a percent sign",
            )


def expand(pattern: str, producer: Producer, *, extra: bool = False) -> Path:
    """The file name that a pattern gives one process.

    Args:
        pattern: As in `RecordConfig.output`; a directory stands for the default name in it.
        producer: Whose profile it is.
        extra: The process is not the first of its rank, so its name must tell it apart.
    """
    if pattern.endswith("/") or Path(pattern).is_dir():
        pattern = str(Path(pattern) / "%s.bragg")
    values = {
        "s": producer.stem,
        "p": str(producer.pid),
        "r": str(producer.rank or 0),
        "h": producer.host,
        "%": "%",
    }
    path = Path(_TOKEN.sub(lambda token: values[token[1]], pattern))
    used = set(_TOKEN.findall(pattern))
    suffix = ""
    if producer.rank is not None and not used & {"p", "r"}:
        suffix += f"-r{producer.rank}"
    if extra and "p" not in used:
        suffix += f"-p{producer.pid}"
    stem = path.name.removesuffix(".bragg")
    return path.with_name(f"{stem}{suffix}.bragg")


def claim(path: Path, taken: set[Path], *, force: bool) -> Path:
    """Reserve a name with an empty file, so that two runs at once cannot choose the same.

    Args:
        path: The wanted name; `-2`, `-3`, … is added to the stem of one that exists.
        taken: Names that this run already uses, not to be overwritten even with `force`; the new one is added.
        force: Take `path` although it exists.

    Raises:
        OSError: The file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    candidate = path
    while not _reserved(candidate, overwrite=force and candidate not in taken):
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    taken.add(candidate)
    return candidate


def give_free_name(file: Path, path: Path) -> Path:
    """Move a file to a name that no other has, numbered as by `claim`; at no moment is there a part of it.

    Args:
        file: On the same file system.
        path: The wanted name.

    Returns:
        The name.

    Raises:
        OSError: It cannot be moved.
    """
    for number in count(1):
        candidate = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            os.link(file, candidate)
        except FileExistsError:
            continue
        except OSError:  # A file system without links: the name is empty for the moment between two calls.
            candidate = claim(path, set(), force=False)
            file.replace(candidate)
            return candidate
        break
    file.unlink()
    return candidate


def _reserved(path: Path, *, overwrite: bool) -> bool:
    try:
        path.open("ab" if overwrite else "xb").close()
    except FileExistsError:
        return False
    return True


def finish_capture(
    capture: Path, finisher: Finisher, name: Callable[[Profile], Path], *, exit_code: int | None = None
) -> tuple[Path, Profile]:
    """Write the profile of a capture and remove the capture.

    Args:
        capture: The capture; removed when it is empty, too.
        finisher: Writes the profile, beside the capture, where it overwrites nothing.
        name: Reserves the profile's name, which may depend on its content.
        exit_code: Of the process, negative for a signal; None: not known.

    Raises:
        NothingRecorded: The capture is empty.
        BadFile: The capture is damaged, or the profile cannot be written.
        OSError: The profile cannot be given its name.
    """
    unnamed = capture.with_suffix(".unnamed")
    try:
        profile = finisher(capture, unnamed, exit_code=exit_code)
    except NothingRecorded:
        capture.unlink()
        raise
    path = name(profile)
    try:
        shutil.move(unnamed, path)
    except BaseException:  # Ctrl-C, too: the capture has everything.
        unnamed.unlink(missing_ok=True)
        if path.stat().st_size == 0:  # else it is an earlier one, of `force`
            path.unlink()
        raise
    capture.unlink()
    return path, profile


def stable_directory(pattern: str) -> Path:
    """The directory of a pattern, as far as it is known before the processes are."""
    directory = Path(pattern) if pattern.endswith("/") or Path(pattern).is_dir() else Path(pattern).parent
    while "%" in str(directory):
        directory = directory.parent
    return directory.absolute()


def make_capture_directory(pattern: str) -> Path:
    """Create a hidden directory for captures beside the profiles to come.

    Raises:
        RecordingFailed: Nothing can be written there, or the disk is nearly full.
    """
    directory = stable_directory(pattern)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        captures = Path(tempfile.mkdtemp(prefix=".bragg-", dir=directory))
    except OSError as error:
        raise RecordingFailed(
            f"cannot write to {directory}: {error.strerror}", hint="Choose another place for the profile with -o"
        ) from error
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < MINIMUM_FREE_BYTES:
        captures.rmdir()
        raise RecordingFailed(
            f"the disk is full: {free_bytes >> 20} MB free at {directory}, {MINIMUM_FREE_BYTES >> 20} MB needed",
            hint="Make room, or choose another place for the profile with -o",
        )
    return captures
