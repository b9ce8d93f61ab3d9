"""A directory with a file of another profiler for each rank, as a job.

A file is of the rank that it says (`distributedInfo` of PyTorch's profiler), else of that in its name, such as
`report.3.sqlite` or `trace-rank3.json.gz`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bragg.errors import BadFile
from bragg.formats.files import first_bytes
from bragg.model.ranks.job import Rank
from bragg.registry import FORMATS

_JSON = (".json", ".json.gz")
_OF_ANYTHING = (*_JSON, ".bin")  # such as weights of a model
SUFFIXES = (*_OF_ANYTHING, ".pftrace", ".pftrace.gz", ".perfetto-trace", ".sqlite")
_OWN = "bragg"  # an archive, as weights of PyTorch are
_NUMBER = re.compile(r"(?:rank|[._-])(\d{1,9})(?:\.[A-Za-z]+)+$")
_HEAD_BYTES = 1 << 16
_PLACE = re.compile(rb'"distributedInfo"\s*:\s*\{([^{}\[\]]*)')
_FACT = re.compile(rb'"(rank|world_size)"\s*:\s*(\d{1,9})\b')


def number_in_name(path: Path) -> int | None:
    """The rank that a file is named after; None: its name has no number."""
    found = _NUMBER.search(path.name)
    return int(found[1]) if found else None


def has_foreign_ranks(directory: Path) -> bool:
    """Whether a directory has files of at least two ranks, and no profile of bragg."""
    numbers: set[int] = set()
    for rank in _ranks(directory):
        numbers.add(rank.rank)
        if len(numbers) > 1:
            return True
    return False


def foreign_ranks(directory: Path) -> list[Rank]:
    """The ranks whose files are in a directory; none if these are of fewer than two, or there are profiles of bragg."""
    ranks = list(_ranks(directory))
    return ranks if len({each.rank for each in ranks}) > 1 else []


def _ranks(directory: Path) -> Iterator[Rank]:
    if next(directory.glob("*.bragg"), None) is not None:
        return
    for path in sorted(directory.iterdir()):
        if path.name.endswith(SUFFIXES) and not path.name.startswith(".") and (rank := _rank_of(path)) is not None:
            yield rank


def _rank_of(path: Path) -> Rank | None:
    """The rank of a file; None: it tells none. Files with names that most often are of no profiler are looked into."""
    if not path.name.endswith(_OF_ANYTHING):
        number = number_in_name(path)
        return None if number is None else Rank(number, path)
    try:
        start, content = first_bytes(path, _HEAD_BYTES)
    except BadFile:
        return None
    others = (each for name, each in FORMATS.items() if name != _OWN)
    if not any(each.read is not None and each.begins(start, content) for each in others):
        return None
    place = _PLACE.search(content)
    told = {name.decode(): int(value) for name, value in _FACT.findall(place[1])} if place else {}
    number = told.get("rank", number_in_name(path))
    return None if number is None else Rank(number, path, world=told.get("world_size"))
