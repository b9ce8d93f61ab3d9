"""Tiles that change their layout through shared memory in each turn of a loop."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# Of a loop that only moves tiles: the trip through shared memory and its barriers; -1 % and 6 % on an H100.
_SAVED = 0.05
_TRANSPOSED = (
    "load the tile in the order in which it is used (swap the strides instead of tl.trans), "
    "or transpose once, outside of the loop"
)
_CHANGE = "take the access or reduction that needs another layout out of the loop"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    atomics = {each.place for each in compiled.atomics or ()}  # what these need is theirs, as what dots need is
    large = (each for each in compiled.conversions or () if each.elements > compiled.threads)
    conversions = [each for each in large if each.place not in atomics]
    if not conversions or compiled.dots:
        return None
    worst = max(conversions, key=lambda each: each.elements)
    return Defect(
        f"changes the layout of tiles through shared memory {_times(len(conversions))} in each turn of a loop",
        _TRANSPOSED if worst.is_transposed else _CHANGE,
        _SAVED,
        Confidence.HEURISTIC,
        [each.place for each in (worst, *conversions)],
        (Quantity("changes of layout", len(conversions)), Quantity("elements of a tile", worst.elements)),
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


RULE = kernel_rule(
    "layout-conversion-in-loop",
    _judge,
    "changes of layout through shared memory in loops of Triton kernels without products",
    f"{_TRANSPOSED}; {_CHANGE}",
)
