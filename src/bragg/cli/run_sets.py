"""Two sets of runs on a command line: the files before and those after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from glob import escape, has_magic
from pathlib import Path

from bragg.cli.profile_file import newest_profile
from bragg.errors import UsageError
from bragg.formats.job.directory import is_job

_NUMBERED = re.compile(r"(?P<stem>.+?)[-_.](?P<number>\d+)")
_HINT = (
    "Name two files, two directories, two patterns in quotes ('main-*.bragg' 'branch-*.bragg'), "
    "or files that are numbered: main-1.bragg main-2.bragg branch-1.bragg branch-2.bragg"
)


def two_sets(words: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files before and after.

    Args:
        words: Two files, directories, patterns, or names without the numbers of `bragg run --repeat`; or more files,
            whose names without their numbers are two.

    Raises:
        UsageError: These are not two sets.
    """
    if len(words) == 2:
        one, other = map(_files_of, words)
        return one, other
    groups: dict[Path, list[Path]] = {}
    for word in words:
        groups.setdefault(_without_number(word), []).append(word)
    if len(groups) != 2:
        names = ", ".join(map(set_name, groups.values()))
        found = f"{names} {'is one' if len(groups) == 1 else f'are {len(groups)}'}" if groups else "none is named"
        raise UsageError(f"a comparison needs two sets of files, and {found}", hint=_HINT)
    before, after = groups.values()
    return before, after


def set_name(files: Sequence[Path]) -> str:
    """What a set is called: its file, or what its files are called without their numbers."""
    return str(files[0]) if len(files) == 1 else f"{_without_number(files[0])} ({len(files)} runs)"


def short_names(before: str, after: str) -> tuple[str, str]:
    """Names of two sets from where they differ on."""
    one, other = before.split("/"), after.split("/")
    n_common = 0
    while n_common < min(len(one), len(other)) - 1 and one[n_common] == other[n_common]:
        n_common += 1
    return "/".join(one[n_common:]), "/".join(other[n_common:])


def _files_of(word: Path) -> list[Path]:
    if is_job(word):
        return [newest_profile(word)]
    if word.is_dir():
        files, where = sorted(word.glob("*.bragg")), f"in {word}"
    elif has_magic(str(word)) and not word.exists():
        files, where = sorted(Path(word.anchor).glob(str(word.relative_to(word.anchor)))), f"named {word}"
    elif word.exists():
        return [word]
    else:  # as for `bragg run --repeat 10 -o main`
        stem = word.name.removesuffix(".bragg")
        return sorted(word.parent.glob(f"{escape(stem)}-[0-9]*.bragg")) or [word]
    if not files:
        raise UsageError(f"there is no .bragg file {where}", hint=_HINT)
    return files


def _without_number(file: Path) -> Path:
    numbered = _NUMBERED.fullmatch(file.stem)
    return file.with_name(numbered["stem"] if numbered else file.stem)
