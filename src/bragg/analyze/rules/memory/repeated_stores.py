"""Stores of a tile to the same place in each turn of a loop."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_CHANGE = "keep the tile in a variable of the loop, and store it once after the loop"
_CHANGE_OF_LOOPS = (
    "do not store it in the first loop: compute it in the second one again, from what it was computed from"
)


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    in_loop = [each for each in compiled.accesses or () if each.in_loop]
    found = [each for each in in_loop if each.is_store and each.is_repeated]
    if not found:
        return _of_later_loop(compiled)
    worst = max(found, key=lambda each: each.size_bytes)
    # Each store of a sum comes with a load of it.
    stored = sum(each.size_bytes for each in found)
    share, is_measured = kernel.share_of_lines([each.place for each in found])
    return Defect(
        f"stores {counted_text(worst.size_bytes, 'byte')} to the same place in each turn of a loop",
        _CHANGE,
        share if is_measured else stored / sum(each.size_bytes for each in in_loop),
        Confidence.LIKELY,
        [each.place for each in (worst, *found)],
        (
            Quantity("size of the tile", worst.size_bytes, "B"),
            Quantity("such stores", len(found)),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
        ),
        is_measured,
    )


def _of_later_loop(compiled: CompiledKernel) -> Defect | None:
    """Tiles that are kept in memory between two loops, although the second one stores them again."""
    places = compiled.rewritten or ()
    sizes = [each.size_bytes for each in compiled.accesses or () if each.in_loop]
    stored = sum(each.size_bytes for each in compiled.accesses or () if each.place in places)
    if not stored:
        return None
    return Defect(
        "stores tiles in one loop that the next one loads, changes and stores again",
        _CHANGE_OF_LOOPS,
        stored / sum(sizes),
        Confidence.LIKELY,
        places,
        (Quantity("such stores", len(places)),),
    )


RULE = kernel_rule(
    "repeated-stores",
    _judge,
    "tiles that Triton kernels store to the same place in each turn of a loop, or in two loops",
    _CHANGE,
)
