"""Collectives in the text of an optimized HLO module: operation, elements, type, and which devices take part.

    %all-gather-start.1 = (f32[8]{0}, f32[16]{0}) all-gather-start(%x), replica_groups={{0,1},{2,3}}, dimensions={0}

becomes `collective all-gather[8 f32, group devices 2,3 of 2]` in the process of device 2: the elements are those of the
input of a device. The text is that of all devices and counts them in the order that the program was compiled for; where
that is not known, it becomes `collective all-gather[8 f32 in groups of 2]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from bragg.grouping.device_groups import group_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_OPERATIONS = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{((?:\{[\d,]+\},?)*)\}")
# Numbers from 0 in a grid of these sizes, whose axes are in another order then, cut into groups.
_IOTA = re.compile(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MOST_DEVICES = 1 << 20
# JAX 0.11: axes of a mesh that a group extends over; devices in the order of their numbers, of a grid, or as listed.
_MESH = re.compile(
    r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((?:\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))\))? \{([^}]*)\}"
)
_MESH_AXIS = re.compile(r"'([^']+)'=(\d+)")
_GROUP_AXIS = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")  # `'a':(2)4`: of an axis of 2 x 4 x any the middle
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
        sizes = _numbers(iota[3])
        shape = (int(iota[1]), int(iota[2]))
        if prod(sizes) == prod(shape) <= _MOST_DEVICES:
            return _cut(range(prod(sizes)), sizes, _numbers(iota[4]) or range(len(sizes)), shape)
    if mesh := _MESH.search(line):
        return _groups_of_mesh(mesh)
    return []


def _groups_of_mesh(mesh: re.Match[str]) -> Sequence[Sequence[int]]:
    """The axes of the mesh are cut where groups begin and end, so that each part lies in a group or between groups."""
    sizes = {name: int(size) for name, size in _MESH_AXIS.findall(mesh[1])}
    grouped = [
        (name, int(outer or 1), int(size or sizes.get(name, 1))) for name, outer, size in _GROUP_AXIS.findall(mesh[5])
    ]
    n_devices = prod(sizes.values())
    if not sizes or n_devices > _MOST_DEVICES or any(name not in sizes for name, _, _ in grouped):
        return []
    parts, inside = [], []
    for name, size in sizes.items():
        own = [(outer, outer * inner) for each, outer, inner in grouped if each == name]
        for low, high in pairwise(sorted({1, size, *(edge for edges in own for edge in edges)})):
            if size % high or high % low:
                return []
            inside.append(any(begin <= low < end for begin, end in own))
            parts.append(high // low)
    axes = sorted(range(len(parts)), key=lambda part: inside[part])
    n_together = prod(size for size, is_inside in zip(parts, inside, strict=True) if is_inside)
    return _cut(_devices_of_mesh(mesh, n_devices), parts, axes, (n_devices // n_together, n_together))


def _devices_of_mesh(mesh: re.Match[str], n_devices: int) -> Sequence[int]:
    if listed := _numbers(mesh[4]):
        return listed
    if grid := _numbers(mesh[2]):
        rows = _cut(range(prod(grid)), grid, _numbers(mesh[3]) or range(len(grid)), (1, prod(grid)))
        return rows[0] if rows else []
    return range(n_devices)


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


def _cut(
    devices: Sequence[int], sizes: Sequence[int], axes: Sequence[int], shape: tuple[int, int]
) -> Sequence[Sequence[int]]:
    """Groups of devices that stand in a grid whose axes are put in another order; none: the numbers do not agree."""
    import numpy as np  # JAX has loaded it

    if sorted(axes) != list(range(len(sizes))) or len(devices) != prod(sizes):
        return []
    groups: list[list[int]] = np.array(devices).reshape(sizes).transpose(axes).reshape(shape).tolist()
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
