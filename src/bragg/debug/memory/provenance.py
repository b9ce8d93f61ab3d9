"""Pointers whose lanes or programs belong to different tensors, and pointers made from integers.

Such a pointer points into a `JointBuffer`: its offset holds the number of a tensor in the upper bits and the element
offset in that tensor in the lower ones. So moving, broadcasting and merging it is integer arithmetic as for any other
pointer, and every lane keeps its tensor: an address that leaves its tensor never becomes one of another tensor.

    bit 63 ... 50        49 ... 0
    number of the tensor  element offset + 2^49
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, RuntimeFault, Unsupported
from bragg.debug.memory.addresses import NOWHERE, buffers_at, nowhere_at
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.state import machine
from bragg.debug.values import OPERATORS, Pointer, Tensor, scalar
from bragg.model.table import Array

_SHIFT = 50  # Addresses of programs have 47 bits, so even those of no tensor fit below; 8192 tensors fit above.
_HALF = 1 << (_SHIFT - 1)
_MOST_MEMBERS = 1 << (63 - _SHIFT)


class JointBuffer(Buffer):
    """Several tensors that a pointer may point into.

    Args:
        members: The tensors; their numbers are their places.
    """

    def __init__(self, members: tuple[Buffer, ...]) -> None:
        first = members[0]
        names = dict.fromkeys(one.name for one in members)
        super().__init__(" or ".join(names), first.dtype, first.flat[:0], (0,), (1,), 0)
        self.members = members


def joined(pointers: Sequence[Pointer]) -> list[Pointer]:
    """The same pointers, all into one (joint) buffer.

    Raises:
        KernelFault: Their element types differ, or some are constant.
    """
    if all(pointer.buffer is pointers[0].buffer for pointer in pointers):
        return list(pointers)
    if any(pointer.element is not pointers[0].element for pointer in pointers):
        described = " and ".join(sorted({str(pointer.dtype) for pointer in pointers}))
        raise KernelFault(f"a name holds {described}: Triton does not compile that", hint="Convert them to one type")
    if len(set(map(is_constant, pointers))) > 1:
        raise KernelFault(
            "a name holds a constant pointer and one that is not: Triton does not compile that",
            hint="Annotate both parameters tl.const, or none",
        )
    members: list[Buffer] = []
    for pointer in pointers:
        members.extend(one for one in _members(pointer.buffer) if one not in members)
    joint = JointBuffer(tuple(members))
    return [Pointer(joint, _renumbered(pointer, members), pointer.element) for pointer in pointers]


def is_constant(pointer: Pointer) -> bool:
    """It points into what the kernel's parameters call constant."""
    return _members(pointer.buffer)[0].is_constant


def _members(buffer: Buffer) -> tuple[Buffer, ...]:
    return buffer.members if isinstance(buffer, JointBuffer) else (buffer,)


def _renumbered(pointer: Pointer, members: list[Buffer]) -> Tensor:
    """Offsets with the numbers that the tensors have among `members`."""
    offset, old = pointer.offset, _members(pointer.buffer)
    if not isinstance(pointer.buffer, JointBuffer):
        return _moved(offset, np.int64(members.index(old[0]) << _SHIFT))
    numbers = np.array([members.index(one) for one in old], np.int64)
    which = _numbers(offset.data)
    return Tensor(offset.data + ((numbers[which] - which) << _SHIFT), offset.dtype, taint=offset.taint)


def _moved(offset: Tensor, distance: Any) -> Tensor:
    moved: Tensor = OPERATORS["add"](offset, scalar(int(distance), DTYPES["int64"]))
    return moved


def _numbers(offsets: Array) -> Array:
    result: Array = (offsets + _HALF) >> _SHIFT
    return result


def parts(pointer: Pointer) -> Iterator[tuple[Pointer, Array]]:
    """For each tensor of a joint pointer: a pointer into it, and its lanes: bool [programs or 1, *block]."""
    assert isinstance(pointer.buffer, JointBuffer)
    offsets = pointer.offset.data
    which = _numbers(offsets)
    for number in np.unique(which).tolist():
        member = pointer.buffer.members[number]
        lanes = which == number
        local = np.where(lanes, offsets - (number << _SHIFT), member.low)
        yield Pointer(member, Tensor(local, pointer.offset.dtype), pointer.element), lanes


def addresses_of(pointer: Pointer) -> Tensor:
    """int64: the addresses in bytes."""
    size = pointer.element.size_bytes
    if not isinstance(pointer.buffer, JointBuffer):
        return Tensor(pointer.offset.data * size + pointer.buffer.address, DTYPES["int64"], taint=pointer.offset.taint)
    total = np.zeros_like(pointer.offset.data)
    for part, lanes in parts(pointer):
        total = np.where(lanes, part.offset.data * size + part.buffer.address, total)
    return Tensor(total, DTYPES["int64"], taint=pointer.offset.taint)


def pointer_of_addresses(addresses: Tensor, element: DType) -> Pointer:
    """Pointers to the places of some addresses; each belongs to the tensor that it lies in.

    An address of no tensor is an integer like any other until something is read or written there.

    Raises:
        RuntimeFault: An address in a tensor is not a multiple of the element's size away from its start.
        Unsupported: There are more of them than a pointer can hold.
    """
    data = addresses.data.astype(np.int64)
    for listener in machine().listeners.pointed:
        listener(data)
    distinct, inverse = np.unique(data, return_inverse=True)
    numbers: dict[Buffer, int] = {}
    offsets = np.empty(len(distinct), np.int64)
    found = buffers_at(distinct.tolist())
    for place, (address, buffer) in enumerate(zip(distinct.tolist(), found, strict=True)):
        seen, distance = _seen_as(element, address, buffer)
        offsets[place] = (numbers.setdefault(seen, len(numbers)) << _SHIFT) + distance
    if len(numbers) > _MOST_MEMBERS:
        raise Unsupported(f"a block of {len(numbers)} pointers to places in no tensor")
    pointed = next(iter(numbers)) if len(numbers) == 1 else JointBuffer(tuple(numbers))
    offset = Tensor(offsets[inverse].reshape(data.shape), DTYPES["int64"], taint=addresses.taint)
    return Pointer(pointed, offset, element)


def _seen_as(element: DType, address: int, buffer: Buffer) -> tuple[Buffer, int]:
    """The buffer of an address as one of some elements, and the offset of the address in elements."""
    seen = buffer if buffer is NOWHERE else buffer.seen_as(element)
    offset, rest = divmod(address - seen.address, element.size_bytes)
    if seen is NOWHERE and (rest or abs(offset) >= _HALF):
        return nowhere_at(address), 0
    if rest:
        raise RuntimeFault(f"the address {address:#x} is not aligned to {element}", hint="Check the offset in bytes")
    return seen, offset
