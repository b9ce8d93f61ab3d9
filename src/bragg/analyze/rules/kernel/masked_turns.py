"""Loops of which a mask drops whole turns, as those above the diagonal of causal attention, or behind a length."""

from __future__ import annotations

from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import MaskedLoop

# Of a square, half of the tiles are above the diagonal, and the longest programs still take all turns: with 8 blocks
# a multiprocessor, attention took 28 and 38 % less on an H100, with 31 50 % on an H200.
_OF_SQUARE, _SAVED_OF_SQUARE = 0.5, 0.35
# Of lengths and windows, data and arguments decide: as if half of the turns were dropped. On an H100 sums over padded
# slots took 46 % less, attention with a window 96 %.
_SAVED_BY_DATA = 0.5
# Products of eight experts, of which one is kept, took 37 and 39 % less without the others; sums of a segment 71 %.
_MOST_OF_PRODUCTS, _MOST = 0.6, 0.75
_MOST_OF_WINDOW = 0.95  # of 512 turns 6 were kept, and the launch took 96 % less on an H100
_CHANGES = {
    "end": "end the loop at the last turn that the mask leaves: range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_N)",
    "start": "begin the loop at the first turn that the mask leaves: tl.maximum(0, first - window) // BLOCK * BLOCK",
    "turn": "let each program take only what is its own: sort by what is compared, and pass where parts begin",
}
_BY_LENGTH = "end the loop at what the mask compares with, which the program has loaded: range(0, length, BLOCK)"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    loops = [each for each in compiled.masked_loops or () if each.turns != 1]
    if not loops:
        return None
    worst = max(loops, key=lambda each: (each.multiplies, each.turns or 0))
    is_by_length = worst.is_by_data and worst.limit == "end"
    compares = "a length that the program has loaded" if is_by_length else "the program's number"
    why = "it compares for equality" if worst.limit == "turn" else f"it compares with {compares}"
    turns = f"all {worst.turns:,} turns" if worst.turns else "all turns"
    return Defect(
        f"runs {turns} of a loop in each program, though a mask drops all that some turns compute: {why}",
        _BY_LENGTH if is_by_length else _CHANGES[worst.limit],
        _saved(worst, kernel),
        Confidence.HEURISTIC if worst.is_by_data else Confidence.LIKELY,
        [each.place for each in (worst, *loops)],
        (Quantity("such loops", len(loops)), *([Quantity("turns", worst.turns)] if worst.turns else [])),
    )


def _saved(loop: MaskedLoop, kernel: HotKernel) -> float:
    if loop.limit == "turn":
        most = _MOST_OF_PRODUCTS if loop.multiplies else _MOST
        return min(1 - 1 / loop.turns, most) if loop.turns else most
    if loop.kept_turns and loop.mean_turns:
        return min(max(1 - loop.kept_turns / loop.mean_turns, 0.0), _MOST_OF_WINDOW)
    if loop.is_by_data or loop.limit == "start":
        return _SAVED_BY_DATA
    blocks = kernel.launches[0].blocks if kernel.launches else 0
    return max(_OF_SQUARE - kernel.num_sms / blocks, 0.0) if blocks and kernel.num_sms else _SAVED_OF_SQUARE


RULE = kernel_rule(
    "masked-turns",
    _judge,
    "loops of Triton kernels of which a mask drops whole turns",
    "; ".join((_CHANGES["end"], _BY_LENGTH)),
)
