"""What compilers made otherwise of kernels, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.analyze.comparing.compiled_changes import CompiledChange
from bragg.model.kernels.names import base_name
from bragg.views.text.style import Style, printable
from bragg.views.text.units import share_text

__all__ = ["compiled_lines"]


def compiled_lines(changes: Sequence[CompiledChange], style: Style) -> list[str]:
    """A line for each kernel with all that changed, below an empty one."""
    by_kernel: dict[str, list[str]] = {}
    for change in changes:
        before, after = (_text(value, change.unit) for value in (change.before, change.after))
        by_kernel.setdefault(change.kernel, []).append(f"{change.fact} {before} → {after}")
    lines = [
        f"compiled otherwise: {printable(base_name(name))}: {', '.join(facts)}" for name, facts in by_kernel.items()
    ]
    return ["", *(style.cut(line, style.width) for line in lines)] if lines else []


def _text(value: int | float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    if unit == "share":
        return share_text(value)
    return f"{value:,} B" if unit == "B" else f"{value:,}"
