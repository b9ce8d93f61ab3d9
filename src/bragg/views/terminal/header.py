"""The lines above a view: what was run where, and how far the numbers can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bragg.views.text.memory_facts import memory_lines
from bragg.views.text.nccl_facts import nccl_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.telemetry_facts import telemetry_lines

__all__ = ["header_lines"]


def header_lines(meta: Mapping[str, Any], source: str, style: Style, wall: Sequence[str] = ()) -> list[str]:
    """At most four lines, more where the parts need them, for each of few GPUs with telemetry or memory, and warnings.

    Args:
        meta: `Profile.meta`.
        source: Name of the file.
        style: How to decorate.
        wall: The parts of its wall time, in lines; empty: they are not known.
    """
    facts = RunFacts(meta)
    separator = " · " if style.unicode else "; "
    recorder = f"recorded by {facts.recorder}" if facts.recorder else ""
    run = [facts.duration_text(), facts.machine, f"backend {facts.backend}", facts.cost]
    told = [*telemetry_lines(meta), *memory_lines(meta), *nccl_lines(meta)]
    return [
        style.cut(f"{source}: {facts.command or recorder or 'unknown command'}", style.width),
        *map(style.bold, wall),
        style.dim(style.cut(separator.join(filter(None, run)), style.width)),
        *([style.dim(style.cut(facts.versions, style.width))] if facts.versions else []),
        *(style.dim(style.cut(line, style.width)) for line in told),
        *(style.warning(f"warning: {text}") for text in facts.warnings()),
    ]
