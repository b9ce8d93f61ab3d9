"""When and where values of metrics were recorded: profiles have them by call path, traces by scope that was entered."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bragg.core import core
from bragg.model import FrameKind, Profile, TrackKind

__all__ = ["forget", "keep", "note", "of_slices", "release"]


class _Noted(NamedTuple):
    """Values that were recorded together, as a trace shows them."""

    time_ns: int
    thread: int
    metrics: dict[str, Any]


_noted: deque[_Noted] = deque()
_users = 0


def keep() -> None:
    """Keep values from now on, until as many `release`: for one more session with a trace."""
    global _users
    _users += 1


def release() -> None:
    """The session has ended; with the last one the values are forgotten."""
    global _users
    _users -= 1
    if _users == 0:
        _noted.clear()


def forget(profile: Profile) -> None:
    """Values of a phase that was written are needed no more, unless another session keeps a trace too."""
    slices = profile.slices
    if _users != 1 or not len(slices):
        return
    is_host = profile.tracks.kind[slices.track] == TrackKind.HOST_THREAD
    end_ns = int((slices.start_ns + slices.duration_ns)[is_host].max(initial=0))
    while _noted and _noted[0].time_ns <= end_ns:
        _noted.popleft()


def note(metrics: Mapping[str, Any]) -> None:
    """Remember values of this thread's innermost scope, if a trace is kept."""
    if _users:
        _noted.append(_Noted(core.now_ns(), threading.get_native_id(), dict(metrics)))


def of_slices(profile: Profile) -> dict[int, dict[str, str]]:
    """Values as texts, by the slice of the scope that they belong to."""
    by_thread: dict[int, list[_Noted]] = defaultdict(list)
    for noted in list(_noted):
        by_thread[noted.thread].append(noted)
    sums: dict[int, dict[str, Any]] = defaultdict(dict)
    for thread, all_noted in by_thread.items():
        for row, noted in _innermost(_scopes(profile, thread), all_noted):
            for name, value in noted.metrics.items():
                sums[row][name] = _added(sums[row].get(name), value, name)
    return {row: {name: _text(value) for name, value in sorted(values.items())} for row, values in sums.items()}


def _scopes(profile: Profile, thread: int) -> list[tuple[int, int, int]]:
    """Begin, end and row of the scopes of a thread, by begin."""
    tracks, slices = profile.tracks, profile.slices
    is_here = (tracks.kind == TrackKind.HOST_THREAD) & (tracks.stream == thread)
    rows = np.flatnonzero(is_here[slices.track] & (profile.tree.kind[slices.node] == FrameKind.SCOPE))
    begins = slices.start_ns[rows]
    ends = begins + slices.duration_ns[rows]
    return sorted(zip(begins.tolist(), ends.tolist(), rows.tolist(), strict=True))


def _innermost(scopes: list[tuple[int, int, int]], all_noted: list[_Noted]) -> Iterator[tuple[int, _Noted]]:
    """Values with the scope that was entered last of those that are open at their time."""
    open_scopes: list[tuple[int, int]] = []  # end and row, outermost first
    coming = iter(scopes)
    following = next(coming, None)
    for noted in all_noted:
        while following is not None and following[0] <= noted.time_ns:
            open_scopes = [each for each in open_scopes if each[0] >= following[0]]
            open_scopes.append(following[1:])
            following = next(coming, None)
        while open_scopes and open_scopes[-1][0] < noted.time_ns:
            open_scopes.pop()
        if open_scopes:
            yield open_scopes[-1][1], noted


def _added(before: Any, value: Any, name: str) -> Any:
    if before is None or name.endswith("(pty)") or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return [one + other for one, other in zip(before, value, strict=False)]
    return before + value


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text, value))}]"
    return f"{value:f}" if isinstance(value, float) else str(value)
