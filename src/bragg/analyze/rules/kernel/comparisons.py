"""Counts, choices, sums of prefixes, ranks and greatest elements that are found by comparing each with each."""

from __future__ import annotations

from bragg.analyze.causes.thresholds import MANY_COMPARED, SHORT_LAUNCH
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Compares, Comparison

_DOES = {
    Compares.COUNTS: "counts or adds up what is in each bin by comparing each element with every bin",
    Compares.CHOOSES: "looks entries of a table up by comparing each element with every entry",
    Compares.PLACES: "finds between which edges each element is by comparing it with every edge",
    Compares.PREFIXES: "adds up the elements before each one by masking all pairs of them",
    Compares.RANKS: "finds the rank of each element by comparing it with all others",
    Compares.GREATEST: "finds the greatest elements one after the other, with a reduction of the whole tile for each",
}
_CHANGES = {
    Compares.COUNTS: "tl.histogram(bins, BINS, mask), or tl.atomic_add(sums + bins, weights) for sums",
    Compares.CHOOSES: "load entries by their index: tl.load(table + index)",
    Compares.PLACES: "a binary search: a loop of log2(edges) turns that loads one edge for each element; or a division",
    Compares.PREFIXES: "tl.cumsum(values, axis); of recurrences, tl.associative_scan",
    Compares.RANKS: "tl.sort(values)",
    Compares.GREATEST: "tl.topk(values, K), or tl.sort; to know where they were, with the index in the low bits",
}


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.comparisons or () if each.values is None or each.values >= MANY_COMPARED.value]
    if not found or kernel.is_short:
        return None
    worst = max(found, key=_cost)
    places = [each.place for each in (worst, *found)]
    share, is_measured = kernel.share_of_lines(places)
    return Defect(
        f"{_DOES[worst.kind]}{f' ({worst.values:,} of them)' if worst.values else ''}",
        _CHANGES[worst.kind],
        share or None,
        Confidence.LIKELY if is_measured else Confidence.HEURISTIC,
        places,
        (
            *([Quantity("values that each is compared with", worst.values)] if worst.values else []),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
        ),
        is_measured,
    )


def _cost(comparison: Comparison) -> tuple[bool, float]:
    return comparison.in_loop, comparison.values or 0


RULE = kernel_rule(
    "many-comparisons",
    _judge,
    "elements of tiles that Triton kernels compare with each of many values, or with each other",
    "; ".join((_CHANGES[Compares.COUNTS], _CHANGES[Compares.PREFIXES], _CHANGES[Compares.RANKS])),
    MANY_COMPARED,
    SHORT_LAUNCH,
)
