"""A profile as `bragg view` shows it: header, tree or table, and notes; as lines or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bragg.analyze.wall.parts import wall_parts
from bragg.model import Profile
from bragg.model.meta.completeness import completeness_of
from bragg.views.terminal.flat_view import default_metrics, flat_lines, flat_view
from bragg.views.terminal.header import header_lines
from bragg.views.terminal.idle_view import idle_json, idle_lines
from bragg.views.terminal.tree_text import tree_lines
from bragg.views.terminal.tree_view import tree_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.memory_facts import memory_json
from bragg.views.text.nccl_facts import nccl_json
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.telemetry_facts import telemetry_json
from bragg.views.text.training_steps import steps_line
from bragg.views.text.waiting import threads_add_up, waiting_lines, workers_line
from bragg.views.text.wall_line import wall_json, wall_lines


@dataclass(frozen=True, eq=False)
class ShownProfile:
    """A profile, or a part or grouping of it, and how it is shown.

    Attributes:
        profile: What to show.
        source: What it is called.
        options: What is wanted of it.
        recorded: The profile before it was grouped, which sentences are of; None: `profile`.
        notes: What the reader must know of what is shown.
        hints: What to look at next.
        part: Of the run, whose idle time is shown: `all`; else the steady state where one is known.
    """

    profile: Profile
    source: str
    options: ViewOptions
    recorded: Profile | None = None
    notes: Sequence[str] = ()
    hints: Sequence[str] = ()
    part: str | None = None

    @property
    def whole(self) -> Profile:
        """What sentences are of."""
        return self.recorded or self.profile


def profile_lines(shown: ShownProfile, style: Style, *, flat: bool = False, answer: Sequence[str] = ()) -> list[str]:
    """Header, tree or table, and notes of a profile.

    Args:
        shown: The profile.
        style: How to decorate.
        flat: A table instead of a tree.
        answer: What bounds it, and what to change first, in lines.
    """
    body = flat_table(shown, style) if flat else tree_lines(tree_view(shown.profile, shown.options), style)
    wall = wall_lines(wall_parts(shown.whole), style)
    if not wall and (steps := steps_line(shown.whole)):
        wall = style.wrap(steps, 2, "  ")
    # Without a GPU the answer has the shares of waiting, too.
    says_waits = bool(answer) and not shown.whole.measured("gpu_time")
    waits = [workers_line(shown.whole)] if says_waits else waiting_lines(shown.whole)
    said = [*idle_lines(shown.profile, shown.part), *filter(None, waits)]
    default = () if shown.profile.measured("gpu_time") else ("host_time",)
    if "host_time" in (shown.options.metrics or default) and shown.profile.measured("host_time"):
        said += filter(None, [threads_add_up(shown.whole, shown.profile)])
    told = [*style.paragraphs(said), *map(style.dim, style.paragraphs(shown.notes))]
    return [*header_lines(RunFacts.of(shown.whole), shown.source, style, wall, answer), *told, "", *body]


def flat_table(shown: ShownProfile, style: Style) -> list[str]:
    """The profile by kernel or function, in lines."""
    return flat_lines(flat_view(shown.profile, shown.options, default_metrics(style)), style)


def profile_json(shown: ShownProfile, *, flat: bool) -> dict[str, Any]:
    """The same as JSON values, with the facts of the run."""
    profile = shown.profile
    table = flat_view(profile, shown.options) if flat else tree_view(profile, shown.options)
    return {
        "file": shown.source,
        "meta": profile.meta,
        "completeness": completeness_of(profile.meta).word,
        "wall": wall_json(wall_parts(shown.whole)),
        "telemetry": telemetry_json(profile.meta),
        "memory": memory_json(profile.meta),
        "nccl": nccl_json(profile.meta),
        **idle_json(profile, shown.part),
        **table.to_json(),
        "hints": [*shown.notes, *shown.hints],
    }
