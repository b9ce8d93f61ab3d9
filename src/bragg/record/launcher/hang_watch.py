"""Names the ranks that others wait for while a job hangs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePath

from bragg.model.facts import Facts
from bragg.record.launcher.background import every
from bragg.record.standing import REPORTS_IN_A_WATCH, SUFFIX

_N_NAMED = 8
# Code of these is not where a program stands, but what it called.
_LIBRARIES = ("site-packages", "dist-packages", "lib/python", "<frozen")


@dataclass(frozen=True)
class Group:
    """What a rank did in a process group.

    Attributes:
        entered: Collectives that it has entered.
        last: The last of them.
        ago_s: How long ago, s.
    """

    entered: int
    last: str
    ago_s: float


@dataclass(frozen=True)
class Standing:
    """Where a rank stands.

    Attributes:
        rank: Its number.
        stack: Lines of the main thread, innermost first.
        groups: By name.
    """

    rank: int
    stack: tuple[str, ...]
    groups: dict[str, Group]

    @property
    def line(self) -> str:
        """The innermost line of the program itself."""
        own = next((line for line in self.stack if not any(part in line for part in _LIBRARIES)), "")
        return _short(own or next(iter(self.stack), "an unknown line"))


def watching_ranks(directory: Path, watch_s: float) -> AbstractContextManager[None]:
    """While the body runs, say on stderr which ranks others wait for, once for each collective that hangs."""
    told = [""]

    def work() -> None:
        lines = hang_lines(read_standings(directory), watch_s)
        hang = lines[0].partition(" s in ")[2] if lines else ""  # without how long it has lasted
        if lines and hang != told[0]:
            print("\n".join(f"bragg: {line}" for line in lines), file=sys.stderr, flush=True)
        told[0] = hang

    return every(watch_s / REPORTS_IN_A_WATCH, work, "bragg watch")


def read_standings(directory: Path) -> list[Standing]:
    """What the ranks of this host have said last."""
    found = []
    for path in directory.glob(f"*{SUFFIX}"):
        try:
            told = Facts(json.loads(path.read_bytes()))
            late_s = time.time() - path.stat().st_mtime
        except (OSError, ValueError, RecursionError):  # It is being replaced, or its rank was killed.
            continue
        rank = told.integer("rank")
        if rank is not None:
            groups = {name: _group(each, late_s) for name, each in told.table("groups").tables().items()}
            found.append(Standing(rank, tuple(told.texts("stack")), groups))
    return sorted(found, key=lambda each: each.rank)


def _group(told: Facts, late_s: float) -> Group:
    return Group(told.count("entered"), told.text("last"), told.number("ago_s") + max(late_s, 0.0))


def hang_lines(ranks: Sequence[Standing], watch_s: float) -> list[str]:
    """Which ranks have not entered a collective that others have been in for a time; empty: none hangs.

    Ranks enter the collectives of a group in one order, so who has entered fewer is who the others wait for.
    """
    names = dict.fromkeys(name for each in ranks for name in each.groups)
    for name in names:
        members = [each for each in ranks if name in each.groups]
        most = max(each.groups[name].entered for each in members)
        waiting = [each for each in members if each.groups[name].entered == most]
        missing = [each for each in ranks if each not in waiting and _is_member(each, name, ranks)]
        waits_s = min(each.groups[name].ago_s for each in waiting)
        if missing and waits_s >= watch_s:
            return list(_told(name, most, waiting, missing, waits_s))
    return []


def _is_member(rank: Standing, name: str, ranks: Sequence[Standing]) -> bool:
    """Whether a rank takes part in a group; one that has not entered any may, if the group has room for all."""
    return name in rank.groups or name.rpartition(" of ")[2] in (str(len(ranks)), name)


def _told(
    name: str, most: int, waiting: Sequence[Standing], missing: Sequence[Standing], waits_s: float
) -> Iterator[str]:
    last = waiting[0].groups[name].last
    who = ", ".join(str(each.rank) for each in missing[:_N_NAMED])
    more = f" and {len(missing) - _N_NAMED} more" if len(missing) > _N_NAMED else ""
    plural = "s" if len(missing) > 1 else ""
    has = "have" if plural else "has"
    yield (
        f"{_count(len(waiting))} for {waits_s:.0f} s in {last}, collective {most} of {name}; "
        f"rank{plural} {who}{more} {has} not entered it"
    )
    for each in missing[:_N_NAMED]:
        group = each.groups.get(name)
        yield f"  rank {each.rank} stands at {each.line}, after collective {group.entered if group else 0}"
    yield f"  rank {waiting[0].rank} waits at {waiting[0].line}"


def _count(n_ranks: int) -> str:
    return "1 rank waits" if n_ranks == 1 else f"{n_ranks} ranks wait"


def _short(line: str) -> str:
    file, _, rest = line.rpartition(":")
    return f"{PurePath(file).name}:{rest}" if file else line
