"""Loads of the same tile in each turn of a loop."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# After the first turn the tile is in the L1 cache, from which an H100 reads about ten times as fast as from memory.
_OF_CACHE = 0.1
_CHANGE = "load it before the loop: the compiler does not, because the loop stores, and might change what is loaded"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    in_loop = [each for each in compiled.accesses or () if each.in_loop and not each.is_store]
    found = [each for each in in_loop if each.is_repeated]
    if not found:
        return None
    worst = max(found, key=lambda each: each.size_bytes)
    repeated = _OF_CACHE * sum(each.size_bytes for each in found)
    others = sum(each.size_bytes for each in in_loop if not each.is_repeated)
    places = [each.place for each in (worst, *found)]
    share, is_measured = kernel.share_of_lines(places)
    return Defect(
        f"loads the same {counted_text(worst.size_bytes, 'byte')} in each turn of a loop",
        _CHANGE,
        share if is_measured or not others else repeated / (repeated + others),
        Confidence.LIKELY if is_measured else Confidence.HEURISTIC,
        places,
        (
            Quantity("size of the tile", worst.size_bytes, "B"),
            Quantity("such loads", len(found)),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
        ),
        is_measured,
    )


RULE = kernel_rule("repeated-loads", _judge, "tiles that loops of Triton kernels load again in each turn", _CHANGE)
