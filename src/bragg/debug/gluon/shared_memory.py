"""Shared and tensor memory of Gluon kernels: a copy for each program of the batch, seen through views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.flow.lanes import broadcast_all
from bragg.debug.memory.atomics import ATOMICS_WITH_NAN
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.rounding import decode, encode, round_to
from bragg.debug.numbers.shapes import flat_shape
from bragg.debug.state import each_tracker, machine
from bragg.debug.values import IN_FLIGHT, Tensor, TypeOfBlock, lift_array
from bragg.model.table import Array


class _Allocation:
    """What one call allocates.

    Args:
        size_bytes: For each program.
        is_tensor_memory: It is that of the tensor cores, not shared memory.

    Attributes:
        data: uint8 [batch, bytes].
        is_written: bool, as `data`.
        barriers: int64 [batch, elements of 8 bytes, 4]: what `bragg.debug.gluon.barriers` keeps.
        notes: Element of a barrier and what was done to it: file and line that did it last.
    """

    def __init__(self, size_bytes: int, is_tensor_memory: bool = False) -> None:
        programs = len(machine().linear)
        self.is_tensor_memory = is_tensor_memory
        self.data = np.zeros((programs, size_bytes), np.uint8)
        self.is_written = np.zeros((programs, size_bytes), bool)
        self.barriers = np.zeros((programs, size_bytes // 8, 4), np.int64)
        self.notes: dict[tuple[int, str], tuple[str, int]] = {}


@dataclass(frozen=True)
class SharedMemory:
    """A view of an allocation.

    Attributes:
        memory: The allocation.
        offset: int64: for each element its place in the program's copy, in elements.
        element: Type of the elements.
        layout: As the kernel gave it; no matter here.
    """

    memory: _Allocation
    offset: Tensor
    element: DType
    layout: Any = None

    is_kernel_value: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the view."""
        return self.offset.shape

    @property
    def dtype(self) -> DType:
        """Of the elements."""
        return self.element

    @property
    def type(self) -> TypeOfBlock:
        """Element type and shape."""
        return TypeOfBlock(self.element, self.shape)

    @property
    def rank(self) -> int:
        """Axes of the view."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Elements of the view."""
        return self.offset.numel

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of the view."""
        return self.numel * self.element.size_bytes

    def load(self, layout: Any = None) -> Tensor:
        """All elements."""
        del layout
        for tracker in each_tracker():
            tracker.read(self)
        return self.taken()

    def taken(self) -> Tensor:
        """All elements, for what runs beside the kernel."""
        return self._read(self._places(self.offset.data))

    def held(self) -> Tensor:
        """All elements, also those that nobody has written."""
        rows, offsets = self._places(self.offset.data)
        return Tensor(decode(self._typed()[rows, offsets], self.element), self.element)

    def store(self, value: Any, pred: Any = True) -> None:
        """Replace all elements, in the programs whose predicate holds."""
        machine().tell_taint("store", value.taint if isinstance(value, Tensor) else None, IN_FLIGHT)
        for tracker in each_tracker():
            tracker.written(self, chosen_rows(pred))
        self.put(value, pred)

    def put(self, value: Any, pred: Any = True) -> None:
        """The same by what runs beside the kernel."""
        content = cast(as_tensor(value), self.element)
        if content.shape != self.shape:
            raise KernelFault(f"a block of shape {list(content.shape)} does not fit memory of shape {list(self.shape)}")
        self._write(self._places(self.offset.data), content.data, chosen_rows(pred))

    def index(self, index: Any) -> SharedMemory:
        """The part at a place of the first axis."""
        place = as_tensor(index)
        low, high = place.known_bounds()
        if not self.shape or low < 0 or high >= self.shape[0]:
            place_text = f"{low} to {high}" if low != high else str(low)
            raise KernelFault(f"index {place_text} of memory of shape {list(self.shape)}")
        offsets = self.offset.data
        if place.programs == 1:
            return self._view(offsets[:, int(place.data[0])])
        places = lift_array(place.data.astype(np.int64), offsets.ndim)
        whole = np.broadcast_to(offsets, (place.programs, *self.shape))
        return self._view(np.take_along_axis(whole, places, axis=1)[:, 0])

    def slice(self, start: Any, length: int, dim: int = 0) -> SharedMemory:
        """A part along one axis."""
        if not isinstance(start, int):
            raise Unsupported("a slice of memory that starts at run time is not supported", hint="Use index")
        if start < 0 or start + length > self.shape[dim]:
            raise KernelFault(f"slice {start}:{start + length} of axis {dim} of memory of shape {list(self.shape)}")
        key = (slice(None),) * (dim + 1) + (slice(start, start + length),)
        return self._view(self.offset.data[key])

    def permute(self, order: Sequence[int]) -> SharedMemory:
        """The axes in another order."""
        return self._view(self.offset.data.transpose(0, *(axis + 1 for axis in order)))

    def reshape(self, shape: Any) -> SharedMemory:
        """The same elements in another shape."""
        wanted = flat_shape((shape,))
        if math.prod(wanted) != self.numel:
            raise KernelFault(f"memory of shape {list(self.shape)} cannot be reshaped to {list(wanted)}")
        return self._view(self.offset.data.reshape(-1, *wanted))

    def reinterpret(self, dtype: Any = None, shape: Any = None, layout: Any = None) -> SharedMemory:
        """The bytes of the view, which lie together, as elements of another type and shape."""
        element = self.element if dtype is None else dtype
        wanted = self.shape if shape is None else flat_shape((shape,))
        first = self.offset.data.reshape(self.offset.programs, -1).min(axis=1) * self.element.size_bytes
        count = math.prod(wanted)
        if count * element.size_bytes > self.nbytes_per_cta or (first % element.size_bytes).any():
            raise KernelFault(f"memory of {self.nbytes_per_cta} bytes holds no {element}{list(wanted)}")
        offsets = np.arange(count).reshape(wanted)[None] + lift_array(first // element.size_bytes, len(wanted) + 1)
        return replace(self._view(offsets), element=element, layout=layout)

    _reinterpret = reinterpret

    def gather(self, indices: Any, axis: int) -> Tensor:
        """Elements at places along one axis."""
        offsets = self._gathered(as_tensor(indices), axis)
        for tracker in each_tracker():
            tracker.read(self._view(offsets))
        return self._read(self._places(offsets))

    def scatter(self, values: Any, indices: Any, axis: int) -> None:
        """Replace elements at places along one axis."""
        content, places = broadcast_all([cast(as_tensor(values), self.element), as_tensor(indices)])
        offsets = self._gathered(places, axis)
        for tracker in each_tracker():
            tracker.written(self._view(offsets), chosen_rows(True))
        self._write(self._places(offsets), content.data, chosen_rows(True))

    def __getattr__(self, name: str) -> Any:
        operation = name.removeprefix("atomic_scatter_")
        if name.startswith("atomic_scatter_") and operation in ATOMICS_WITH_NAN:
            return lambda values, indices, axis, mask=None: self._changed(operation, values, indices, axis, mask)
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"{name} of shared memory is not supported", hint="Use load, store, index, slice or permute")

    def marked(self, marks: Array, chosen: Array) -> tuple[Array, tuple[Array, Array]]:
        """What is noted for each byte of the allocation, by elements.

        Args:
            marks: [batch, bytes].
            chosen: bool [active]: of which active programs.

        Returns:
            A view [batch, elements, bytes of one], and the places of this memory's elements on its first two axes.
        """
        rows = machine().rows[chosen]
        offsets = self.offset.data.reshape(self.offset.programs, -1)
        own = np.broadcast_to(offsets, (len(chosen), offsets.shape[1]))[chosen]
        return marks.reshape(len(marks), -1, self.element.size_bytes), (rows[:, None], own)

    def get_reg_layout(self, *_arguments: Any, **_named: Any) -> None:
        """Layouts do not matter here."""

    def _keep_alive(self) -> None:
        """Memory lives as long as it is used."""

    def _view(self, offsets: Array) -> SharedMemory:
        return replace(self, offset=Tensor(np.ascontiguousarray(offsets), DTYPES["int64"]))

    def _gathered(self, indices: Tensor, axis: int) -> Array:
        low, high = indices.known_bounds()
        if low < 0 or high >= self.shape[axis]:
            raise KernelFault(
                f"index {low if low < 0 else high} along axis {axis} of memory of shape {list(self.shape)}"
            )
        programs = max(indices.programs, self.offset.programs)
        whole = np.broadcast_to(self.offset.data, (programs, *self.shape))
        places = np.broadcast_to(indices.data.astype(np.int64), (programs, *indices.shape))
        return np.take_along_axis(whole, places, axis=axis + 1)

    def _places(self, offsets: Array) -> tuple[Array, Array]:
        """Program and element of each lane of the active programs."""
        rows = machine().rows
        return lift_array(rows, offsets.ndim), np.broadcast_to(offsets, (len(rows), *offsets.shape[1:]))

    def _typed(self) -> Array:
        return self.memory.data.view(self.element.storage)

    def _read(self, places: tuple[Array, Array]) -> Tensor:
        rows, offsets = places
        if not self.memory.is_written[rows, offsets * self.element.size_bytes].all():
            machine().listeners.tell_difference(
                "shared memory is read before it is written", "Store to it, or wait for the copy into it"
            )
        return Tensor(decode(self._typed()[rows, offsets], self.element), self.element)

    def _write(self, places: tuple[Array, Array], values: Array, chosen: Array, mask: Array | None = None) -> None:
        rows, offsets = (np.broadcast_to(place, places[1].shape) for place in places)
        lanes = np.broadcast_to(lift_array(chosen, offsets.ndim), offsets.shape)
        if mask is not None:
            lanes = lanes & lift_array(mask, offsets.ndim)
        bits = np.broadcast_to(encode(np.ascontiguousarray(values), self.element), offsets.shape)
        self._typed()[rows[lanes], offsets[lanes]] = bits[lanes]
        size = self.element.size_bytes
        written = self.memory.is_written.reshape(len(self.memory.is_written), -1, size)
        written[rows[lanes], offsets[lanes]] = True

    def _changed(self, operation: str, values: Any, indices: Any, axis: int, mask: Any) -> Tensor:
        """Lanes take effect one after the other; gives the old elements."""
        content, places, test = broadcast_all(
            [cast(as_tensor(values), self.element), as_tensor(indices), as_tensor(True if mask is None else mask)]
        )
        rows, offsets = self._places(self._gathered(places, axis))
        rows = np.broadcast_to(rows, offsets.shape)
        operands = np.broadcast_to(content.data, offsets.shape)
        lanes = np.broadcast_to(test.data, offsets.shape)
        old, typed, function = np.zeros(offsets.shape, self.element.carrier), self._typed(), ATOMICS_WITH_NAN[operation]
        for lane in np.argwhere(lanes).tolist():
            key = tuple(lane)
            place = rows[key], offsets[key]
            old[key] = decode(typed[place][None], self.element)[0]
            new = np.asarray(function(old[key], operands[key]), self.element.carrier)[None]
            narrow = round_to(new, self.element) if self.element.is_narrow else new
            typed[place] = encode(narrow, self.element)[0]
        return Tensor(old, self.element)


def chosen_rows(pred: Any) -> Array:
    """The active programs that a predicate chooses: bool [active]."""
    test = cast(as_tensor(pred), DTYPES["int1"]).data.reshape(-1)
    return np.array(np.broadcast_to(test, len(machine().rows)))


def allocate(
    element: DType, shape: Any, layout: Any = None, value: Any = None, *, is_tensor_memory: bool = False
) -> SharedMemory:
    """New memory; None as the value leaves it undefined."""
    extents = flat_shape((shape,))
    count = math.prod(extents)
    machine().largest_block = max(machine().largest_block, count)
    memory = _Allocation(-(-count * element.size_bytes // 8) * 8, is_tensor_memory)
    offsets = np.arange(count, dtype=np.int64).reshape(1, *extents)
    made = SharedMemory(memory, Tensor(offsets, DTYPES["int64"]), element, layout)
    if value is not None:
        made.store(value)
    return made
