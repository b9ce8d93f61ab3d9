"""What compilers made otherwise of kernels, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.analyze.comparing.compiled_changes import CompiledChange
from bragg.model.kernels.names import base_name
from bragg.views.text.style import Style, printable
from bragg.views.text.units import share_text


def compiled_lines(changes: Sequence[CompiledChange], style: Style) -> list[str]:
    """A line for each kernel with all that changed, below an empty one."""
    by_kernel: dict[str, list[CompiledChange]] = {}
    for change in changes:
        by_kernel.setdefault(change.kernel, []).append(change)
    told = [f"{printable(base_name(name))}: {compiled_facts(facts)}" for name, facts in by_kernel.items()]
    return ["", *(style.cut(f"compiled otherwise: {each}", style.width) for each in told)] if told else []


def compiled_facts(changes: Sequence[CompiledChange]) -> str:
    """`registers 62 → 128, occupancy 50.0 % → 25.0 %`."""
    values = ((each.fact, _text(each.before, each.unit), _text(each.after, each.unit)) for each in changes)
    return ", ".join(f"{fact} {before} → {after}" for fact, before, after in values)


def _text(value: int | float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    if unit == "share":
        return share_text(value)
    return f"{value:,} B" if unit == "B" else f"{value:,}"
