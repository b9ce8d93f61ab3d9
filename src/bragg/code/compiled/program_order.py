"""In which order the programs of a product of matrices take its tiles."""

from __future__ import annotations

from bragg.code.compiled.operations import Module, Operation, place_of_chain
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.code.compiled.values import QUOTIENTS, REMAINDERS
from bragg.model.kernels.compiled import ProgramOrder

_ALL = -1  # in place of the row of a loop


def program_order(module: Module, flow: TileDataflow) -> ProgramOrder | None:
    """The order in which programs go along one whole side of the result; None: they do not, or it is not clear.

    Args:
        module: Of TTIR.
        flow: Where its values come from.
    """
    dot = next((each for each in module.operations if each.name == "tt.dot" and each.depth), None)
    inner, outer = _numbers(module, flow) or (None, None)
    if dot is None or inner is None or outer is None:
        return None
    uses = [[name in flow.reached(_ALL, number.results) for name in dot.operands[:2]] for number in (inner, outer)]
    if sorted(uses) != [[False, True], [True, False]]:
        return None
    tiles = flow.number(inner.operands[1]) if inner.name in REMAINDERS else None
    return ProgramOrder(place_of_chain(outer.chain), uses[0].index(True), tiles)


def _numbers(module: Module, flow: TileDataflow) -> tuple[Operation, Operation] | None:
    """What counts along a side from program to program, and what counts these sides; None: something else does."""
    scalars = [each for each in module.operations if "tensor<" not in each.text]
    along = {axis: each for each in scalars for axis in "xy" if f"tt.get_program_id {axis} " in each.text}
    if "x" not in along:
        return None
    numbers = flow.reached(_ALL, [name for each in along.values() for name in each.results])
    divided = [
        each for each in scalars if each.name in (*QUOTIENTS, *REMAINDERS) and not numbers.isdisjoint(each.operands)
    ]
    if not divided and "y" in along:
        return along["x"], along["y"]
    remainders, quotients = ([each for each in divided if each.name in kind] for kind in (REMAINDERS, QUOTIENTS))
    if len(remainders) != 1 or len(quotients) != 1 or remainders[0].operands != quotients[0].operands:
        return None
    return (remainders[0], quotients[0]) if remainders[0].operands[0] in along["x"].results else None
