"""A launch executed again, in another way, on the memory that it had before: what comes out must be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.host.launch import Launch
from bragg.debug.memory.access import Access
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.dtypes import DType
from bragg.debug.numbers.rounding import decode
from bragg.debug.state import Listeners
from bragg.model.table import Array

# Two orders of a sum differ by about as many units in the last place as the square root of its length.
_UNITS = 256
# Where they cancel each other, it is the last place of the largest element that counts.
_UNITS_OF_LARGEST = 16


@dataclass(frozen=True)
class Difference:
    """Elements of a tensor that come out differently.

    Attributes:
        buffer: The tensor.
        count: How many elements.
        offset: Of the first of them.
        before: What the launch itself gave there.
        after: What the replay gave.
        run: The replay.
    """

    buffer: Buffer
    count: int
    offset: int
    before: Any
    after: Any
    run: Callable[[Listeners], None]

    @property
    def element(self) -> str:
        """The first element that differs, as one writes it: `out[3, 5]`."""
        index = self.buffer.index(self.offset) if min(self.buffer.strides, default=0) > 0 else (self.offset,)
        return f"{self.buffer.name}[{', '.join(map(str, index))}]"


@dataclass(frozen=True)
class Writer:
    """Who wrote an element last.

    Attributes:
        file: Of the line.
        line: The line.
        atomics: Lines (file, line) of atomic operations on integers that the launch had.
    """

    file: str
    line: int
    atomics: tuple[tuple[str, int], ...]


class Replay:
    """Keeps what a launch overwrites, so that it can be executed again.

    Args:
        launch: The launch.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._before: dict[tuple[int, int], tuple[Buffer, Array]] = {}

    def see(self, access: Access) -> None:
        """Keep the tensor that is about to be written."""
        flat = access.buffer.flat
        if access.kind == "load" or not len(flat):
            return
        key = flat.__array_interface__["data"][0], flat.nbytes
        if key not in self._before:
            self._before[key] = access.buffer, flat.copy()

    def differences(
        self, run: Callable[[Listeners], None], prepare: Callable[[], None] | None = None
    ) -> list[Difference]:
        """What another execution gives differently; memory is as it was afterwards.

        Args:
            run: Executes it, telling these listeners.
            prepare: Makes memory what the execution is to find; None: what the launch found.

        Raises:
            KernelFault: The other execution does not get to its end.
        """
        with self.rewound() as results:
            if prepare is not None:
                prepare()
            with redirect_stdout(StringIO()):  # What the kernel prints was printed.
                run(Listeners(access=[self.see]))
            pairs = [(buffer, results.get(key, kept)) for key, (buffer, kept) in self._before.items()]
            found = [_difference(buffer, result, run) for buffer, result in pairs]
        return [one for one in found if one is not None]

    @contextmanager
    def rewound(self) -> Iterator[dict[tuple[int, int], Array]]:
        """Memory is what the launch found, and afterwards what it left: [elements] of each tensor's own type."""
        results = {key: buffer.flat.copy() for key, (buffer, _) in self._before.items()}
        try:
            self.restore()
            yield results
        finally:
            self.restore()
            for key, result in results.items():
                self._before[key][0].flat[...] = result

    def in_order(self, numbers: Sequence[int]) -> list[Difference]:
        """What the launch gives differently when its programs run in another order; nothing where they cannot."""
        try:
            return self.differences(lambda listeners: self._launch.run_again(listeners, numbers))
        except (KernelFault, Unsupported):
            return []

    def restore(self) -> None:
        """Put back what was there before the launch; of tensors that overlap the oldest copy counts."""
        for buffer, kept in reversed(self._before.values()):
            buffer.flat[...] = kept

    def writer(self, difference: Difference) -> Writer | None:
        """Who writes an element last when the launch is executed as it was, else in the replay; None: nobody."""
        return self._writer(difference, self._launch.run_again) or self._writer(difference, difference.run)

    def _writer(self, difference: Difference, run: Callable[[Listeners], None]) -> Writer | None:
        size = difference.buffer.dtype.size_bytes
        address = difference.buffer.address + difference.offset * size
        places: list[tuple[str, int]] = []
        atomics: dict[tuple[str, int], None] = {}

        def look(access: Access) -> None:
            if access.kind == "load":
                return
            if access.kind == "atomic" and access.dtype.is_int():
                atomics[access.place] = None
            starts = access.offsets * access.dtype.size_bytes + access.buffer.address
            if ((starts <= address) & (address < starts + access.dtype.size_bytes)).any():
                places.append(access.place)

        self.differences(lambda listeners: run(Listeners(access=[*listeners.access, look])))
        return Writer(*places[-1], tuple(atomics)) if places else None


def _difference(buffer: Buffer, result: Array, run: Callable[[Listeners], None]) -> Difference | None:
    """What memory holds now against what the launch had left there."""
    differs = result != buffer.flat
    if not differs.any():
        return None
    places = np.flatnonzero(differs)
    before, after = (decode(flat[places], buffer.dtype) for flat in (result, buffer.flat))
    if buffer.dtype.is_floating():
        matters = ~_as_good_as_equal(before, after, buffer.dtype, _largest(result, buffer.dtype))
        places, before, after = places[matters], before[matters], after[matters]
    if not len(places):
        return None
    first = int(places[0]) - buffer.first
    return Difference(buffer, len(places), first, before[0].item(), after[0].item(), run)


def _largest(flat: Array, dtype: DType) -> float:
    values = decode(flat, dtype)
    return float(np.abs(values[np.isfinite(values)]).astype(np.float64).max(initial=0.0))


def _as_good_as_equal(a: Array, b: Array, dtype: DType, largest: float) -> Array:
    """Floats that differ as sums in two orders do, in a tensor with a largest element."""
    unit = 2.0 ** -(dtype.fp_mantissa_width + 1)
    with np.errstate(all="ignore"):
        is_close = np.isclose(
            a.astype(np.float64), b.astype(np.float64), _UNITS * unit, _UNITS_OF_LARGEST * unit * largest
        )
    return np.asarray(is_close | (np.isnan(a) & np.isnan(b)))
