"""Values of kernels: tensors and pointers of all programs of a batch at once.

Axis 0 of every array counts programs; a size of 1 there means that all programs agree. The other axes are the block's.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.dtypes import DTYPES, DType, PointerType, Shape
from bragg.debug.state import machine
from bragg.debug.texts.shown import array_text
from bragg.model.table import Array
from bragg.registry import load

if TYPE_CHECKING:
    from bragg.debug.memory.storage import Buffer

Bounds = tuple[int, int] | None

# The lower eleven bits of a taint: why an element must not be used. Those above them: of which loads it comes.
UNDEFINED = 1
OVERFLOWN = 2
MISLED = 4  # It rests on a promise that does not hold.
UNWRITTEN = 8  # Of memory that nobody has written.
DIVIDED = 16  # An integer divided by zero.
SHIFTED = 32  # By as many bits as the integer has, or more.
SIGNAL = 64  # What an atomic that acquires has returned: to decide by it is to wait for what it has seen.
IN_FLIGHT = 128  # Of a product that runs beside the kernel and was not waited for.
CHOSEN = 256  # By an undefined element, among known ones: which of them it is, nobody knows.
FILLED = 512  # A lane that a mask leaves out, with the value that the load gives it; marked where reductions skip it.
OUTSIDE = 1024  # Read outside of its tensor, which is told where it happens.
# What must not be used in any way, and is told of where it is.
MEANINGLESS = (UNDEFINED, CHOSEN, UNWRITTEN, DIVIDED, SHIFTED, IN_FLIGHT)
_SHOWN_AS_UNDEFINED = np.uint32(sum(MEANINGLESS) | OUTSIDE)
LOADS = tuple(1 << bit for bit in range(11, 32))


class _OperatorTable(dict[str, Callable[..., Any]]):
    """The table of `numbers.operators`, loaded at its first use: what stands in it needs the classes below."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        table: dict[str, Callable[..., Any]] = load("bragg.debug.numbers.operators:OPERATORS")
        self.update(table)
        return table[name]


OPERATORS = _OperatorTable()
_loaded = cache(load)


def _method(name: str) -> Callable[..., Any]:
    """What a method of a value does, which the language says: it needs the classes below."""
    found: Callable[..., Any] = _loaded("bragg.debug.foreign:method")(name)
    return found


class Operators:
    """Python's operators, with the meaning that Triton gives them."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if machine().is_plain and isinstance(self, Tensor) and self.numel == 1:
            return bool(self.data.any())
        raise KernelFault(
            "a value that is known only when the kernel runs was used where Triton needs one at compile time",
            hint="Make it a tl.constexpr, or use & | ~ and tl.where",
        )

    def __iter__(self) -> Iterator[Any]:
        raise KernelFault("a tensor cannot be iterated over in a kernel", hint="Use tl.split or a reduction")

    def __index__(self) -> NoReturn:
        raise KernelFault(
            "Triton needs a constant here, and got a value that is known only when the kernel runs",
            hint="Annotate it: name: tl.constexpr = ...",
        )


def _operator(name: str, swapped: bool) -> Callable[..., Any]:
    if swapped:
        return lambda self, other: OPERATORS[name](other, self)
    return lambda self, *other: OPERATORS[name](self, *other)


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
for _name in _BINARY:
    setattr(Operators, f"__{_name}__", _operator(_name, swapped=False))
    setattr(Operators, f"__r{_name}__", _operator(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "pos", "getitem"):
    setattr(Operators, f"__{_name}__", _operator(_name, swapped=False))


class Unset(Operators):
    """The value of a name that has none yet, or not on every way that leads here."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<no value yet, or not on every way here>"

    def __getitem__(self, key: Any) -> NoReturn:
        raise unset_fault()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise unset_fault()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unset_fault()


UNSET = Unset()


def unset_fault() -> KernelFault:
    """What is raised when such a name is used."""
    return KernelFault(
        "a name is used that is not assigned on every way here", hint="Assign it before the `if` or the loop"
    )


@dataclass(frozen=True)
class TypeOfBlock:
    """What `x.type` gives: element type and shape."""

    scalar: DType | PointerType
    shape: tuple[int, ...]

    @property
    def element_ty(self) -> Any:
        """The type of one element; for a pointer to one value, of what it points to."""
        is_one_pointer = isinstance(self.scalar, PointerType) and not self.shape
        return self.scalar.element_ty if is_one_pointer else self.scalar

    @property
    def nbytes(self) -> int:
        """Bytes of the block in memory."""
        return math.prod(self.shape) * self.scalar.primitive_bitwidth // 8

    def is_block(self) -> bool:
        """More than a single value."""
        return bool(self.shape)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scalar, name)


# Files of what is typed at a prompt of pdb, IPython and debugpy.
_PROMPTS = ("<stdin>", "<string>", "<ipython-input>")


def _is_asked_by_hand() -> bool:
    """What asks a tensor is typed at a prompt, or one of NumPy's functions: they get a row for each active program."""
    frame = sys._getframe(2)
    if frame.f_code.co_filename in _PROMPTS:
        return frame.f_code.co_name == "<module>"  # Else it is a function that was made by `exec`.
    return str(frame.f_globals.get("__name__", "")).startswith("numpy.")


def _adds_axes(key: Any) -> bool:
    """An index is one that kernels have too, and adds axes to a block: `:` and None alone."""
    parts = key if isinstance(key, tuple) else (key,)
    is_of_kernels = all(part is None or (isinstance(part, slice) and part == slice(None)) for part in parts)
    return is_of_kernels and any(part is None for part in parts)


class _Shown(Operators):
    """At a debugger's prompt, an array with a row for each active program."""

    __slots__ = ()

    @abstractmethod
    def active_data(self) -> Array:
        """The array: [active programs or 1, *block]."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if hasattr(np.ndarray, name) and _is_asked_by_hand():
            return getattr(self.active_data(), name)
        method = _method(name)
        return lambda *args, **kwargs: method(self, *args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        if _is_asked_by_hand() and not _adds_axes(key):
            return self.active_data()[key.active_data() if isinstance(key, _Shown) else key]
        return OPERATORS["getitem"](self, key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """For NumPy's functions at a debugger's prompt: a row for each active program.

        Raises:
            ValueError: Elements are undefined, for which numbers that are no floats have no value.
        """
        data = self.active_data()
        if isinstance(data, np.ma.MaskedArray):
            if data.dtype.kind != "f":
                raise ValueError("elements are undefined: methods such as .max() and .mean() leave them out")
            data = data.filled(np.nan)
        return np.array(data, dtype, copy=copy)


class Tensor(_Shown):
    """Numbers of one type.

    Args:
        data: [programs or 1, *block]; None when `affine` says it all.
        dtype: Type of the elements; `data` has its carrier.
        affine: The closed form of an integer block, where it is known.
        bounds: Least and greatest element of integers and booleans, not necessarily reached; None: unknown.
        taint: uint8 or uint32, broadcasts to `data`: bits of elements that must not be used; None: no such element.
    """

    __slots__ = ("_data", "affine", "bounds", "dtype", "taint")

    def __init__(
        self,
        data: Array | None,
        dtype: DType,
        affine: Affine | None = None,
        bounds: Bounds = None,
        taint: Array | None = None,
    ) -> None:
        self._data = data
        self.dtype = dtype
        self.affine = affine
        self.bounds = bounds
        self.taint = taint

    @property
    def data(self) -> Array:
        """All elements, in the carrier of the type: [programs or 1, *block]."""
        if self._data is None:
            assert self.affine is not None
            self._data = self.affine.array(self.dtype.carrier)
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the block; empty for a single value."""
        return Shape(self._data.shape[1:] if self._data is not None else self.affine.shape)  # type: ignore[union-attr]

    @property
    def programs(self) -> int:
        """Size of axis 0."""
        return self._data.shape[0] if self._data is not None else len(self.affine.base)  # type: ignore[union-attr]

    @property
    def type(self) -> TypeOfBlock:
        """Element type and shape."""
        return TypeOfBlock(self.dtype, self.shape)

    @property
    def numel(self) -> int:
        """Elements of the block."""
        return math.prod(self.shape)

    def known_bounds(self) -> tuple[int, int]:
        """Least and greatest element of an integer tensor, looked up if need be."""
        if self.bounds is None:
            data = self.data
            self.bounds = (int(data.min()), int(data.max())) if data.size else (0, 0)
        return self.bounds

    def rows(self, positions: Array) -> Tensor:
        """The same values for some of the programs: intp [chosen]."""
        if self.programs == 1:
            return self
        taint = self.taint
        if taint is not None and len(taint) > 1:
            taint = taint[positions]
        if self._data is None and self.affine is not None:
            return Tensor(None, self.dtype, self.affine.rows(positions), self.bounds, taint)
        affine = self.affine.rows(positions) if self.affine is not None else None
        return Tensor(self.data[positions], self.dtype, affine, self.bounds, taint)

    def tainted(self, lanes: Array, bit: int) -> Tensor:
        """The same values, of which some lanes must not be used.

        Args:
            lanes: bool [programs or 1, *block], or what broadcasts to it.
            bit: Why, with the load that they come from.
        """
        return self.with_taint(lanes * np.uint32(bit))

    def with_taint(self, taint: Array) -> Tensor:
        """The same values, with a taint beside their own: uint8 or uint32, broadcasts to `data`."""
        own = Tensor(self._data, self.dtype, self.affine, self.bounds, taint)
        own.taint = merged_taint(self, own)
        return own

    def whole_taint(self) -> Array | None:
        """The taint of each element, uint8 or uint32 [programs or 1, *block]; None: no such element."""
        if self.taint is None:
            return None
        taint = lift_array(self.taint, self.data.ndim)
        return np.broadcast_to(taint, np.broadcast_shapes(taint.shape, self.data.shape))

    def untainted(self, bit: int) -> Tensor:
        """The same values, which may be used as far as one reason is concerned."""
        if self.taint is None or not (self.taint & bit).any():
            return self
        return Tensor(self._data, self.dtype, self.affine, self.bounds, self.taint & np.uint32(~bit & 0xFFFFFFFF))

    def known(self, lanes: Array) -> Tensor:
        """The same values, of which some lanes may be used in any way: bool [programs or 1, *block]."""
        if self.taint is None:
            return self
        taint = np.where(lanes, np.uint8(0), lift_array(self.taint, lanes.ndim))
        return Tensor(self._data, self.dtype, self.affine, self.bounds, taint)

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The transposed block."""
        transposed: Tensor = _method("trans")(self)
        return transposed

    def __repr__(self) -> str:
        data = self.active_data()
        per_program = "" if len(data) == 1 else f", {len(data)} programs"
        undefined = ", -- is undefined" if isinstance(data, np.ma.MaskedArray) else ""
        text = array_text(data[0] if len(data) == 1 else data, 64)
        return f"{self.dtype}{list(self.shape)}{per_program}{undefined}: {text}"

    def active_data(self) -> Array:
        """A row for each active program, or one for all, of a tensor that a debugger shows: [active or 1, *block].

        They are in the carrier of the type, as `data` is, and masked where they are undefined. Programs that went
        another way have rows too where a kernel has not used the tensor since.
        """
        data = self.data
        if self.taint is not None:
            is_undefined = np.broadcast_to(lift_array(self.taint, data.ndim) & _SHOWN_AS_UNDEFINED != 0, data.shape)
            data = np.ma.array(data, mask=is_undefined) if is_undefined.any() else data
        try:
            now = machine()
        except KernelFault:  # The kernel has ended.
            return data
        is_narrow = self.programs != len(now.linear) or len(now.rows) == len(now.linear)
        return data if is_narrow else data[now.rows]


class Pointer(_Shown):
    """Addresses of elements: a buffer and offsets in it, so an address always knows the tensor it belongs to.

    Args:
        buffer: The tensor pointed into.
        offset: int64 elements from its first one.
        element: Type that is read and written.
    """

    __slots__ = ("buffer", "element", "offset")

    def __init__(self, buffer: Buffer, offset: Tensor, element: DType) -> None:
        self.buffer = buffer
        self.offset = offset
        self.element = element

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the block of pointers."""
        return self.offset.shape

    @property
    def programs(self) -> int:
        """Size of axis 0."""
        return self.offset.programs

    @property
    def dtype(self) -> PointerType:
        """Pointer to the element type."""
        return PointerType(self.element)

    @property
    def type(self) -> TypeOfBlock:
        """Element type and shape."""
        return TypeOfBlock(self.dtype, self.shape)

    @property
    def numel(self) -> int:
        """Pointers in the block."""
        return self.offset.numel

    def moved(self, offset: Tensor) -> Pointer:
        """A pointer into the same tensor."""
        return Pointer(self.buffer, offset, self.element)

    def rows(self, positions: Array) -> Pointer:
        """The same pointers for some of the programs: intp [chosen]."""
        return self.moved(self.offset.rows(positions))

    def active_data(self) -> Array:
        """For a debugger, int64 elements from the tensor's first one on: [active programs or 1, *block]."""
        return self.offset.active_data()

    def __repr__(self) -> str:
        buffer = self.buffer
        tensor = f"{buffer.name} ({buffer.dtype}{list(map(int, buffer.shape))}, at {buffer.address:#x})"
        return f"{self.dtype} into {tensor}, elements {self.offset!r}"


def scalar(value: bool | float, dtype: DType | None = None) -> Tensor:
    """A single value that all programs share, of the type Triton gives to such a constant.

    Raises:
        KernelFault: No integer type holds the number.
    """
    if type(value) is int:
        return _integer_scalar(value, dtype)
    if type(value) is float and value:  # Zeros of both signs are equal.
        return _float_scalar(value, dtype)
    return _scalar(value, dtype or _type_of_constant(value))


@lru_cache(maxsize=1024)
def _integer_scalar(value: int, dtype: DType | None) -> Tensor:
    """The same few numbers come again and again; nobody changes their arrays."""
    return _scalar(value, dtype or _type_of_constant(value))


@lru_cache(maxsize=1024)
def _float_scalar(value: float, dtype: DType | None) -> Tensor:
    return _scalar(value, dtype or _type_of_constant(value))


def _scalar(value: bool | float, dtype: DType) -> Tensor:
    data = np.full(1, value, dtype.carrier)
    if not dtype.is_int():
        return Tensor(data, dtype)
    number = int(value)
    affine = Affine(np.full(1, number, np.int64), (), ()) if number < 2**63 and dtype.bits > 1 else None
    return Tensor(data, dtype, affine, (number, number))


def _type_of_constant(value: bool | float) -> DType:
    if isinstance(value, bool | np.bool_):
        return DTYPES["int1"]
    if isinstance(value, float):
        size = abs(value)
        is_float32 = size in (0, float("inf")) or size != size or 2**-126 <= size <= (2 - 2**-23) * 2**127
        return DTYPES["fp32" if is_float32 else "fp64"]
    for name, low, high in (("int32", -(2**31), 2**31), ("uint32", 2**31, 2**32), ("int64", -(2**63), 2**63)):
        if low <= value < high:
            return DTYPES[name]
    if 2**63 <= value < 2**64:
        return DTYPES["uint64"]
    raise KernelFault(f"no integer type of Triton holds {value}")


def merged_taint(*operands: Any) -> Array | None:
    """The taint of a result, uint8 or uint32: that of all its operands, broadcast to the shape of the result."""
    taint = None
    for operand in operands:
        other = operand.taint if isinstance(operand, Tensor) else None
        if other is None:
            continue
        if taint is None:
            taint = other
        else:
            rank = max(taint.ndim, other.ndim)
            taint = lift_array(taint, rank) | lift_array(other, rank)
    return taint


def bits_of(taint: Array) -> int:
    """All bits of a taint, uint8 or uint32 of any shape, together."""
    return int(np.bitwise_or.reduce(taint, axis=None))


def taint_of_choice(taint: Array) -> Array:
    """The taint of what is chosen among known elements by elements with a taint, of the shape and type of theirs."""
    choice: Array = np.where(taint & UNDEFINED, (taint & ~np.uint32(UNDEFINED)) | np.uint32(CHOSEN), taint)
    return choice


def lift_array(data: Array, rank: int) -> Array:
    """Put axes of one element after the programs of [programs or 1, *block], of any type, up to `rank` axes."""
    missing = rank - data.ndim
    return data.reshape(data.shape[0], *[1] * missing, *data.shape[1:]) if missing > 0 else data


def uniform_value(value: Any) -> Any:
    """The Python number of a single value that all programs share; anything else as it is."""
    if isinstance(value, Tensor) and value.programs == 1 and not value.shape:
        return value.data[0].item()
    return value
