"""Names that are too long, cut so that they stay apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bragg.views.text.style import Style


def cut_apart(names: Sequence[str], width: int | None, style: Style) -> list[str]:
    """Each name in at most `width` columns: head and tail stay, and of names that would look alike what differs.

    Args:
        names: Which ones are shown together.
        width: None: there is room for all.
        style: Whether an ellipsis can be written.
    """
    cut = [style.cut(name, width) for name in names]
    alike: dict[str, set[str]] = defaultdict(set)
    for name, text in zip(names, cut, strict=True):
        alike[text].add(name)
    if width is None or len(alike) == len(set(names)):
        return cut
    return [
        text if len(alike[text]) == 1 else _with_difference(name, sorted(alike[text]), width, style)
        for name, text in zip(names, cut, strict=True)
    ]


def _with_difference(name: str, others: list[str], width: int, style: Style) -> str:
    """Head of a name, and the rest from a little before the first place where the names differ."""
    columns = zip(*(other.ljust(max(map(len, others))) for other in others), strict=True)
    first = next(place for place, letters in enumerate(columns) if len(set(letters)) > 1)
    head = width // 3
    room = width - head - len(style.ellipsis)
    begin = max(min(first - room // 4, len(name) - room), head)
    return style.cut(f"{name[:head]}{style.ellipsis}{name[begin : begin + room]}", width)
