"""Collectives in the text of an optimized HLO module: operation, elements, type, and how many devices take part.

    %all-gather-start.1 = (f32[8]{0}, f32[16]{0}) all-gather-start(%x), replica_groups={{0,1},{2,3}}, dimensions={0}

becomes `collective all-gather[8 f32 in groups of 2]`: the elements are those of the input of a device. Which devices a
device is with is not said, since the text is that of all of them.
"""

from __future__ import annotations

import re
from math import prod

__all__ = ["collective_of"]

_OPERATIONS = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_GROUP = re.compile(r"replica_groups=(?:\{\{([\d,]+)\}|\[\d+,(\d+)\]<=)")
# As kernels of NCCL call them; the others are called alike.
_TYPES = {"s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "pred": "bool", "f8e4m3fn": "f8e4m3"}


def collective_of(code: str, line: str) -> str:
    """What an instruction does with other devices.

    Args:
        code: The opcode.
        line: The instruction.

    Returns:
        Empty: nothing, or its type or size is not known. Permutations are messages between two devices.
    """
    operation = code.removesuffix("-start")
    group = _GROUP.search(line)
    if operation not in _OPERATIONS or group is None:
        return ""
    result = line.partition(" = ")[2].partition(f" {code}(")[0]
    shapes = _SHAPE.findall(result)
    types = {dtype for dtype, _ in shapes}
    if len(types) != 1:
        return ""
    n_devices = len(group[1].split(",")) if group[1] else int(group[2])
    n_elements = sum(prod(map(int, filter(None, sizes.split(",")))) for _, sizes in shapes)
    if operation == "reduce-scatter":
        n_elements *= n_devices
    elif operation == "all-gather":  # One that starts has its input beside its output.
        n_elements //= n_devices + (operation != code)
    dtype = types.pop()
    return f"collective {operation}[{n_elements} {_TYPES.get(dtype, dtype)} in groups of {n_devices}]"
