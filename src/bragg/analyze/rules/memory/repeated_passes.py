"""Three passes over the same tiles where two do."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# One to learn about a row, one to write it.
_ENOUGH = 2
_CHANGE = (
    "compute what the first passes learn in one: the sum beside the sum of squares, or the maximum beside a sum that "
    "is scaled when it grows (online softmax); or load a row that fits into one tile once"
)


def _judge(_: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.repeated_passes or () if len(each.loops) > _ENOUGH]
    if not found:
        return None
    worst = max(found, key=lambda each: (len(each.loops), each.size_bytes))
    moved = sum(each.size_bytes for each in compiled.accesses or () if each.in_loop)
    spared = sum((len(each.loops) - _ENOUGH) * each.size_bytes for each in found)
    first, second, *others = worst.loops
    return Defect(
        f"goes over the same tiles in {len(worst.loops)} loops, one after the other",
        _CHANGE,
        spared / moved if moved else None,
        Confidence.HEURISTIC,
        [second, first, *others, *worst.loads],
        (Quantity("passes", len(worst.loops)), Quantity("size of the tile", worst.size_bytes, "B")),
    )


RULE = kernel_rule(
    "repeated-passes", _judge, "loops of Triton kernels that load the same tiles three times and more", _CHANGE
)
