"""Keeping or leaving out call paths by what they are called."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from shlex import quote

import numpy as np

from bragg.errors import NothingRecorded, UsageError
from bragg.model import MetricKind, Profile
from bragg.model.ids import FrameId
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray
from bragg.model.transform import with_ancestors, with_descendants
from bragg.views.terminal.columns import choose_names
from bragg.views.text.labels import Labels
from bragg.views.text.style import printable
from bragg.views.text.units import share_text, value_text

# The frame that hooks compute launch metadata in; `:kernel` may follow.
_LAUNCH_METADATA = "__proton_launch_metadata"
_N_NEAREST = 3


@dataclass(frozen=True, eq=False)
class Filtered:
    """A profile whose totals are those of what is left.

    Attributes:
        profile: The call paths that are left.
        notes: What was left out, with its amount; one line each.
    """

    profile: Profile
    notes: list[str] = field(default_factory=list)


def filter_paths(profile: Profile, include: str | None, exclude: str | None, shown: str = "") -> Filtered:
    """Keep what runs in matching frames, then leave out what runs in others, and what only computed launch metadata.

    Args:
        profile: What to filter.
        include: Regular expression, searched in raw, demangled and shown names; keeps the paths to matches.
        exclude: A regular expression; leaves out matches and everything below them.
        shown: The metric that tells how much was left out; time, unless it was recorded and adds up.

    Raises:
        UsageError: An expression is malformed.
        NothingRecorded: Nothing matches, or nothing is left.
    """
    adds_up = shown in profile.metrics and profile.metrics[shown].kind is MetricKind.INCLUSIVE
    metric = shown if adds_up else choose_names(profile, (), ("time",))[0]
    profile, notes = _without_launch_metadata(profile, metric)
    before = profile.total(metric)
    if exclude is not None:
        _require_match(profile, _matches(profile, "--exclude", exclude), "--exclude", exclude)
    if include is not None:
        matches = _matches(profile, "--include", include)
        _require_match(profile, matches, "--include", include)
        wanted = with_descendants(profile.tree, matches)
        profile = regroup(profile.tree, dropped=~with_ancestors(profile.tree, wanted), silenced=~wanted).apply(profile)
        notes.append(f"only call paths through /{include}/: {_amount(profile, profile.total(metric), before, metric)}")
    if exclude is not None:
        total = profile.total(metric)
        profile = regroup(profile.tree, dropped=_matches(profile, "--exclude", exclude)).apply(profile)
        if len(profile.tree) == 1:
            raise NothingRecorded(f"--exclude {exclude!r} leaves nothing to show")
        if total and not profile.total(metric):
            raise NothingRecorded(
                f"--exclude {exclude!r} leaves no {metric}", hint="Exclude less, or choose another --metric"
            )
        left_out = _amount(profile, total - profile.total(metric), before, metric)
        notes.append(f"without call paths through /{exclude}/: {left_out} left out")
    return Filtered(profile, notes)


def _without_launch_metadata(profile: Profile, metric: str) -> tuple[Profile, list[str]]:
    """Leave out what ran only to compute launch metadata: it is not part of the program."""
    names = profile.tree.frames.name
    of_metadata = np.array([name.partition(":")[0] == _LAUNCH_METADATA for name in names], np.bool_)
    if not of_metadata.any():
        return profile, []
    rest = regroup(profile.tree, dropped=of_metadata[profile.tree.frame]).apply(profile)
    total = profile.total(metric)
    left_out = _amount(profile, total - rest.total(metric), total, metric)
    return rest, [f"without the computation of launch metadata: {left_out} left out"]


def compiled(option: str, pattern: str) -> re.Pattern[str]:
    """The regular expression of an option.

    Raises:
        UsageError: It is malformed.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{option}: bad regular expression {pattern!r}: {error}") from error


def _matches(profile: Profile, option: str, pattern: str) -> BoolArray:
    """The nodes, without the root, whose frame matches."""
    search = compiled(option, pattern).search
    labels = Labels(profile.tree.frames)
    used = np.unique(profile.tree.frame[1:])
    found = np.zeros(len(profile.tree.frames), np.bool_)
    found[[frame for frame in used.tolist() if any(map(search, labels.spellings(frame)))]] = True
    matches = found[profile.tree.frame]
    matches[0] = False
    return matches


def _require_match(profile: Profile, matches: BoolArray, option: str, pattern: str) -> None:
    if not matches.any():
        raise NothingRecorded(f"nothing matches {option} {pattern!r}", hint=_meant(profile, option, pattern))


def _meant(profile: Profile, option: str, pattern: str) -> str:
    """What may have been meant: the same in another case, or a name that is spelled nearly so."""
    labels = Labels(profile.tree.frames)
    names = [labels.text(FrameId(frame)) for frame in np.unique(profile.tree.frame[1:]).tolist()]
    if not pattern.startswith("(?") and (found := next(filter(re.compile(pattern, re.I).search, names), "")):
        return f"Case matters; {option} {quote(f'(?i){pattern}')} finds {printable(found)}"
    near = difflib.get_close_matches(pattern, dict.fromkeys(name.partition(" ")[0] for name in names), n=_N_NEAREST)
    nearest = f"Nearest: {printable(', '.join(near))}; " if near else ""
    return f"{nearest}bragg view --flat lists the names"


def _amount(profile: Profile, part: float, whole: float, metric: str) -> str:
    unit = profile.metrics[metric].unit
    share = f" ({share_text(part / whole)})" if whole else ""
    return f"{value_text(part, unit)} of {value_text(whole, unit)} {metric}{share}"
