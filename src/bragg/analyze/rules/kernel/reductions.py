"""Reductions of whole tiles in each turn of a loop."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# Two barriers and a trip through shared memory in each turn; alone.
_SAVED = 0.2
# Beside loads, other blocks use the memory meanwhile, unless a turn loads little: by bytes of a thread. Sums and losses
# of rows took 69 to 79 %, 43 to 61 % and 33 % less with large tiles on an H100; where it is 32 bytes and more, as long.
_SAVED_BESIDE = {2: 0.7, 4: 0.5, 8: 0.3}
_CHANGE = "combine tiles element by element in the loop, and reduce the one tile that is left after it"
_CHANGE_BESIDE = f"a larger tile, so that there are fewer turns; or {_CHANGE}"


def _judge(_: HotKernel, compiled: CompiledKernel) -> Defect | None:
    found = [each for each in compiled.reductions or () if each.in_loop and each.crosses_warps and each.is_only_carried]
    loads = [each.size_bytes for each in compiled.accesses or () if each.in_loop and not each.is_store]
    beside = max(loads, default=0) // compiled.threads if compiled.threads else 0
    if not found or (loads and beside not in _SAVED_BESIDE):
        return None
    worst = max(found, key=lambda each: each.elements)
    return Defect(
        f"reduces a tile of {worst.elements:,} elements across warps in each turn of a loop, only to go on with it",
        _CHANGE_BESIDE if loads else _CHANGE,
        _SAVED_BESIDE[beside] if loads else _SAVED,
        Confidence.LIKELY,
        [each.place for each in (worst, *found)],
        (
            Quantity("elements", worst.elements),
            Quantity("reductions in loops", len(found)),
            *([Quantity("what a thread loads in a turn", beside, "B")] if loads else []),
        ),
        is_of_launch=bool(loads),
    )


RULE = kernel_rule(
    "reduction-in-loop",
    _judge,
    "reductions across warps in each turn of a loop whose result is needed after it only",
    _CHANGE,
)
