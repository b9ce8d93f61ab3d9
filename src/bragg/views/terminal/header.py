"""The lines above a view: what was run where, and how far the numbers can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.views.text.memory_facts import memory_lines
from bragg.views.text.nccl_facts import nccl_lines
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.telemetry_facts import telemetry_lines

_N_LINES = 4


def header_lines(
    facts: RunFacts,
    source: str,
    style: Style,
    wall: Sequence[str] = (),
    answer: Sequence[str] = (),
    *,
    is_whole: bool = False,
) -> list[str]:
    """Three or four texts, in a narrow terminal in up to four lines each; more for GPUs with telemetry or memory.

    Warnings stand last.

    Args:
        facts: About the run.
        source: Name of the file.
        style: How to decorate.
        wall: The parts of its wall time, or its steps, in lines; empty: they are not known.
        answer: What bounds it, and what to change first, in lines; empty: not known.
        is_whole: That the main thread had no core is a warning, which says why; else a clause.
    """
    separator = " · " if style.unicode else "; "
    recorder = f"recorded by {facts.recorder}" if facts.recorder else ""
    run = [facts.duration_text(), facts.machine, f"backend {facts.backend}", facts.cost]
    run += [] if is_whole else [facts.starved_clause]
    warnings = facts.cautions() if is_whole else filter(None, [facts.sliced, *facts.warnings()])
    of_gpu = [facts.versions] if facts.devices else []
    run += [] if facts.devices else [facts.versions]
    told = [*telemetry_lines(facts.meta), *memory_lines(facts.meta), *nccl_lines(facts.meta)]
    return [
        style.cut(f"{source}: {facts.command or recorder or 'unknown command'}", style.width),
        *map(style.bold, wall),
        *answer,
        *map(style.dim, style.wrap(separator.join(filter(None, run)), _N_LINES, "  ", separator)),
        *(style.dim(line) for text in filter(None, [*of_gpu, *told]) for line in style.wrap(text, _N_LINES, "  ")),
        *map(style.warning, style.paragraphs(f"warning: {text}" for text in warnings)),
    ]
