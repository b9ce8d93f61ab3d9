"""Collectives in the text of an optimized HLO module: operation, elements, type, and which devices take part.

    %all-gather-start.1 = (f32[8]{0}, f32[16]{0}) all-gather-start(%x), replica_groups={{0,1},{2,3}}, dimensions={0}

becomes `collective all-gather[8 f32, group devices 2,3 of 2]` in the process of device 2: the elements are those of the
input of a device. The text is that of all devices and counts them in the order that the program was compiled for; where
that is not known, it becomes `collective all-gather[8 f32 in groups of 2]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from bragg.grouping.device_groups import group_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CompiledFor", "collective_of"]

_OPERATIONS = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{((?:\{[\d,]+\},?)*)\}")
# Numbers from 0 in a grid of these sizes, whose axes are in another order then, cut into groups.
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MOST_DEVICES = 1 << 20
# As kernels of NCCL call them; the others are called alike.
_TYPES = {"s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "pred": "bool", "f8e4m3fn": "f8e4m3"}


@dataclass(frozen=True)
class CompiledFor:
    """The devices of a program, by the places at which its text counts them.

    Attributes:
        ids: Of the device at each place.
        gpus: Numbers in this process of the devices that belong to it, by place.
        n_partitions: Parts of the program, of which there may be replicas.
    """

    ids: tuple[int, ...]
    gpus: Mapping[int, int]
    n_partitions: int = 1


def collective_of(code: str, line: str, devices: CompiledFor | None = None) -> str:
    """What an instruction does with other devices.

    Args:
        code: The opcode.
        line: The instruction.
        devices: Of the program; None: not known.

    Returns:
        Empty: nothing, or its type or size is not known. Permutations are messages between two devices.
    """
    operation = code.removesuffix("-start")
    groups = _groups_of(line, len(devices.ids) if devices else 0) if operation in _OPERATIONS else []
    if not groups:
        return ""
    result = line.partition(" = ")[2].partition(f" {code}(")[0]
    shapes = _SHAPE.findall(result)
    types = {dtype for dtype, _ in shapes}
    if len(types) != 1:
        return ""
    n_devices = len(groups[0])
    n_elements = sum(prod(map(int, filter(None, sizes.split(",")))) for _, sizes in shapes)
    if operation == "reduce-scatter":
        n_elements *= n_devices
    elif operation == "all-gather":  # One that starts has its input beside its output.
        n_elements //= n_devices + (operation != code)
    dtype = types.pop()
    name = _name_of(groups, line, devices) if devices else ""
    members = f", group {name} of {n_devices}" if name else f" in groups of {n_devices}"
    return f"collective {operation}[{n_elements} {_TYPES.get(dtype, dtype)}{members}]"


def _groups_of(line: str, n_devices: int) -> Sequence[Sequence[int]]:
    """Places of the devices of each group; none: not told."""
    if listed := _LISTED.search(line):
        groups = [[int(place) for place in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", listed[1])]
        return groups or ([range(n_devices)] if n_devices else [])
    if iota := _IOTA.search(line):
        sizes = [int(size) for size in iota[3].split(",")]
        shape = (int(iota[1]), int(iota[2]))
        if prod(sizes) == prod(shape) <= _MOST_DEVICES:
            return _cut(sizes, [int(axis) for axis in iota[4].split(",")] if iota[4] else range(len(sizes)), shape)
    return []


def _cut(sizes: Sequence[int], axes: Sequence[int], shape: tuple[int, int]) -> Sequence[Sequence[int]]:
    import numpy as np  # JAX has loaded it

    if sorted(axes) != list(range(len(sizes))):
        return []
    groups: list[list[int]] = np.arange(prod(sizes)).reshape(sizes).transpose(axes).reshape(shape).tolist()
    return groups


def _name_of(groups: Sequence[Sequence[int]], line: str, devices: CompiledFor) -> str:
    """The groups that devices of this process are in; empty: the text does not say."""
    if "use_global_device_ids=true" not in line and devices.n_partitions != 1:
        return ""
    found = {
        gpu: [devices.ids[each] for each in group]
        for place, gpu in devices.gpus.items()
        for group in groups
        if place in group and max(group) < len(devices.ids)
    }
    return group_text(found) if len(found) == len(devices.gpus) > 0 else ""
