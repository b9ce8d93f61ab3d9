"""`triton.language` as kernels see it inside of the engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.flow.aggregates import aggregate_replace
from bragg.debug.flow.lanes import map_elementwise
from bragg.debug.flow.ranges import KernelRange, StaticRange
from bragg.debug.memory import atomics, blocks, load_store
from bragg.debug.numbers import arithmetic, reductions, shapes
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.casts import bitcast, cast
from bragg.debug.numbers.dtypes import DTYPES, DType, PointerType
from bragg.debug.numbers.mathematics import LANGUAGE_FUNCTIONS, unsigned_high_product
from bragg.debug.numbers.matmul import dot
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.promotion import extremes_are_wide, is_number
from bragg.debug.numbers.scaled import dot_scaled
from bragg.debug.numbers.shapes import broadcast_pair, broadcast_to, flat_shape
from bragg.debug.state import is_wide, machine
from bragg.debug.statements import asserted, device_print, static_assert, static_print
from bragg.debug.values import MISLED, OPERATORS, Pointer, Tensor, TypeOfBlock, scalar, uniform_value

# Most elements of a block: TRITON_MAX_TENSOR_NUMEL of triton.language.
_MOST_ELEMENTS = 1 << 20


def program_id(axis: int) -> Tensor:
    """Number of the program along an axis of the grid."""
    now = machine()
    data = now.program_ids(_grid_axis(axis))
    if (data == data[0]).all():
        data = data[:1]
    return Tensor(data, DTYPES["int32"], bounds=(int(data.min()), int(data.max())))


def num_programs(axis: int) -> Tensor:
    """Programs along an axis of the grid."""
    return scalar(machine().grid[_grid_axis(axis)], DTYPES["int32"])


def _grid_axis(axis: int) -> int:
    if axis not in (0, 1, 2):
        raise KernelFault(f"program_id axis must be 0, 1, or 2 but got {axis}")
    return axis


def arange(start: Any, end: Any) -> Tensor:
    """The numbers from start to end, which are constants a power of two apart."""
    if not (isinstance(start, int) and isinstance(end, int)):
        raise KernelFault("the limits of tl.arange must be constants", hint="Annotate them: name: tl.constexpr")
    count = end - start
    if count <= 0 or count & (count - 1):
        raise KernelFault(
            f"tl.arange({start}, {end}) has {count} elements; Triton needs a power of two",
            hint="Take triton.next_power_of_2 of the extent, and mask what is over",
        )
    affine = Affine(np.full(1, start, np.int64), (1,), (_checked((count,))[0],))
    return Tensor(None, DTYPES["int32"], affine, (start, end - 1))


def _checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    size = 1
    for extent in shape:
        if extent <= 0 or extent & (extent - 1):
            raise KernelFault(f"a block of shape {list(shape)}: Triton needs powers of two")
        size *= extent
    if size > _MOST_ELEMENTS:
        raise KernelFault(f"a block of {size} elements; Triton allows {_MOST_ELEMENTS}")
    return shape


def full(shape: Any, value: Any, dtype: DType) -> Tensor:
    """A block of one value."""
    one = cast(as_tensor(value), dtype) if not is_number(value) else scalar(value, dtype)
    if dtype.is_narrow and is_number(value):
        one = cast(scalar(float(value), DTYPES["fp32"]), dtype)
    elif dtype.is_floating() and is_wide():
        one = cast(one, DTYPES["fp64"])
    filled: Tensor = broadcast_to(one, _checked(flat_shape((shape,))))
    return filled


def _cast(x: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
    value = x if isinstance(x, Pointer) else as_tensor(x)
    if bitcast and isinstance(value, Tensor):
        return _bitcast(value, dtype)
    return cast(value, dtype, fp_downcast_rounding)


_bitcast = bitcast


def _load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Any:
    _check_hints(cache_modifier, (".ca", ".cg", ".cs", ".cv"), eviction_policy)
    if isinstance(pointer, blocks.BlockPointer):
        if mask is not None or other is not None:
            raise KernelFault("a block pointer takes boundary_check and padding_option, not mask and other")
        return pointer.load(_axes(boundary_check), padding_option)
    return load_store.load(pointer, mask, other, volatile)


def _store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    _check_hints(cache_modifier, (".wb", ".cg", ".cs", ".wt"), eviction_policy)
    if isinstance(pointer, blocks.BlockPointer):
        pointer.store(value, _axes(boundary_check))
    else:
        load_store.store(pointer, value, mask)


def _check_hints(cache_modifier: str, modifiers: tuple[str, ...], eviction_policy: str) -> None:
    """Hints have no effect here, but Triton compiles those alone that it knows."""
    for given, known in ((cache_modifier, modifiers), (eviction_policy, ("evict_first", "evict_last"))):
        if given and given not in known:
            raise KernelFault(f"Triton does not know {given!r} here", hint=f"It knows: {', '.join(known)}")


def _axes(boundary_check: Any) -> Sequence[int]:
    return boundary_check if isinstance(boundary_check, Sequence) else (boundary_check,)


def _atomic(operation: str) -> Callable[..., Tensor]:
    def apply(pointer: Any, val: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Tensor:
        return atomics.read_modify_write(operation, pointer, val, mask, sem, scope)

    return apply


def _atomic_cas(pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None) -> Tensor:
    return atomics.compare_and_swap(pointer, cmp, val, sem, scope)


def _dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Tensor:
    left, right = as_tensor(input), as_tensor(other)
    if max_num_imprecise_acc is not None and left.dtype.bits == right.dtype.bits == 8 and left.dtype.minifloat:
        summed = left.shape[-1]
        if max_num_imprecise_acc > summed:
            raise KernelFault(f"max_num_imprecise_acc ({max_num_imprecise_acc}) must be <= K ({summed})")
    if input_precision is None:
        default = sys.modules["triton"].knobs.language.fp32_default  # Of the variable TRITON_F32_DEFAULT.
        input_precision = default or {True: "tf32", False: "ieee", None: None}[allow_tf32]
    _tell_of_depth(left)
    return dot(left, right, acc, input_precision=input_precision, out_dtype=out_dtype)


def _tell_of_depth(left: Tensor) -> None:
    """Report a product over fewer elements than the compiler for the target takes."""
    target = machine().listeners.target
    least = target.least_depth(left.dtype.bits) if target else 1
    if len(left.shape) < 2 or left.shape[-1] >= least:
        return
    machine().listeners.tell_difference(
        f"Triton does not compile tl.dot over {left.shape[-1]} elements of {left.dtype} for NVIDIA GPUs",
        f"Use {least} or more along the axis that is summed, filled with zeros",
    )


def _propagates(choice: Any) -> bool:
    return getattr(choice, "name", "NONE") == "ALL"


def _maximum(x: Any, y: Any, propagate_nan: Any = None) -> Tensor:
    return arithmetic.greatest(x, y, _propagates(propagate_nan))


def _minimum(x: Any, y: Any, propagate_nan: Any = None) -> Tensor:
    return arithmetic.least(x, y, _propagates(propagate_nan))


def _clamp(x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Tensor:
    nan = _propagates(propagate_nan)
    if extremes_are_wide() and as_tensor(x).dtype.is_int():
        raise KernelFault("tl.clamp takes floats before Triton 3.9", hint="Use tl.minimum(tl.maximum(x, low), high)")
    return arithmetic.least(arithmetic.greatest(x, min, nan), max, nan)


def cdiv(x: Any, div: Any) -> Any:
    """`x / div`, rounded up."""
    return (x + (div - 1)) // div


def _reshape(x: Any, *shape: Any, can_reorder: bool = False) -> Any:
    del can_reorder
    return shapes.reshape(as_tensor(x) if is_number(x) else x, flat_shape(shape))


def _trans(x: Any, *dims: Any) -> Any:
    if not dims:
        if len(x.shape) < 2:
            raise KernelFault("tl.trans needs a block of at least two axes")
        dims = (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2)
    return shapes.permute(x, flat_shape(dims))


def _exchanging(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may bring values to other threads, which then wait for each other."""

    def call(*arguments: Any, **named: Any) -> Any:
        machine().tell_meeting()
        return function(*arguments, **named)

    return call


def _expand_dims(x: Any, axis: Any) -> Any:
    value = x if isinstance(x, Pointer) else as_tensor(x)
    axes = list(axis) if isinstance(axis, Sequence) else [axis]
    rank = len(value.shape) + len(axes)
    for one in axes:
        if not -rank <= one < rank:
            raise KernelFault(f"invalid axis {one}: a block of {rank} axes has those from {-rank} to {rank - 1}")
    axes = [one % rank for one in axes]
    if len(set(axes)) < len(axes):
        raise KernelFault(f"tl.expand_dims got duplicate axes, normalized axes = {axes}")
    for one in sorted(axes):
        value = shapes.expand_dims(value, one)
    return value


def _with_indices(x: Tensor, axis: int | None, combine: Any, keep_dims: bool = False) -> Any:
    """A reduction of pairs of element and position."""
    if axis is None:
        x, place = shapes.reshape(x, (x.numel,)), 0
    else:
        place = axis % len(x.shape)
    index = arange(0, x.shape[place])
    for other in range(len(x.shape)):
        if other != place:
            index = shapes.expand_dims(index, other)
    return reductions.reduce((x, broadcast_to(index, x.shape)), place, combine, keep_dims)


def _promoted(x: Tensor) -> Tensor:
    promoted: Tensor = cast(x, DTYPES["fp32"]) if x.dtype.name == "bf16" else x
    return promoted


def _hint(name: str) -> Callable[[Any, Any], Any]:
    def apply(x: Any, values: Any) -> Any:
        for listener in machine().listeners.hint:
            broken = listener(name, x, values)
            if broken is None:
                continue
            x = x.moved(x.offset.tainted(broken, MISLED)) if isinstance(x, Pointer) else x.tainted(broken, MISLED)
        return x

    return apply


def _builtin_extreme(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any, **options: Any) -> Any:
        if all(is_number(value) for value in values) or len(values) == 1:
            return plain(*values)
        result = values[0]
        for value in values[1:]:
            result = function(result, value, **options)
        return result

    return apply


class _ConstantType(type):
    """`tl.constexpr`: constants are plain Python values in the engine."""

    def __call__(cls, value: Any) -> Any:
        return uniform_value(value) if isinstance(value, int) else value

    def __instancecheck__(cls, value: Any) -> bool:
        return not isinstance(value, Tensor | Pointer)


class Constant(metaclass=_ConstantType):
    """`tl.constexpr`."""


def _numbers_too(name: str) -> Callable[..., Any]:
    return lambda x, y, sanitize_overflow=True: OPERATORS[name](as_tensor(x), y)


def _assembly(asm: str, constraints: str, args: Sequence[Any], dtype: Any, is_pure: bool, pack: int) -> Any:
    """Inline PTX, whose engine few kernels need: it takes 10 ms to import."""
    from bragg.debug.ptx.assembly import inline_asm_elementwise

    return inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack)


FUNCTIONS: dict[str, Any] = {
    **DTYPES,
    **{f"float{bits}": DTYPES[f"fp{bits}"] for bits in (16, 32, 64)},
    "bfloat16": DTYPES["bf16"],
    **{f"float8{name[3:]}": dtype for name, dtype in DTYPES.items() if name.startswith("fp8")},
    "pi32_t": PointerType(DTYPES["int32"]),
    "pointer_type": PointerType,
    "const": Constant,
    "constexpr": Constant,
    "tensor": Tensor,
    "range": KernelRange,
    "static_range": StaticRange,
    "condition": lambda test, **_options: test,
    "program_id": program_id,
    "num_programs": num_programs,
    "arange": arange,
    "full": full,
    "cast": _cast,
    "to_tensor": as_tensor,
    "load": _load,
    "store": _store,
    **{f"atomic_{operation}": _atomic(operation) for operation in atomics.ATOMICS},
    "atomic_cas": _atomic_cas,
    "atomic_load": atomics.read,
    "atomic_store": lambda pointer, val, mask=None, sem=None, scope=None: atomics.write(pointer, val, mask, sem, scope),
    "atomic_poll": lambda pointer, expected_value, sem=None, scope=None, timeout_ns=None: atomics.poll(
        pointer, expected_value, sem, scope, timeout_ns
    ),
    "expect_zero": lambda x, mask: x,
    "dot": _dot,
    "dot_scaled": dot_scaled,
    "aggregate_replace": aggregate_replace,
    "tuple": lambda values, _type=None: tuple(values),
    "slice": slice,
    "inline_asm_elementwise": _assembly,
    "map_elementwise": map_elementwise,
    "where": arithmetic.select,
    "add": _numbers_too("add"),
    "sub": _numbers_too("sub"),
    "mul": _numbers_too("mul"),
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _clamp,
    "cdiv": cdiv,
    "abs": arithmetic.abs_,
    "fma": arithmetic.fused,
    "fdiv": lambda x, y, ieee_rounding=False, approx=False: OPERATORS["truediv"](x, y),
    "umulhi": unsigned_high_product,
    **LANGUAGE_FUNCTIONS,
    "broadcast": lambda a, b: broadcast_pair(as_tensor(a), as_tensor(b)),
    "broadcast_to": lambda x, *shape: broadcast_to(as_tensor(x) if is_number(x) else x, flat_shape(shape)),
    "expand_dims": _expand_dims,
    "unsqueeze": lambda x, dim: _expand_dims(x, dim),
    "squeeze": lambda x, dim: shapes.reshape(x, (*x.shape[: dim % len(x.shape)], *x.shape[dim % len(x.shape) + 1 :])),
    "reshape": _exchanging(_reshape),
    "view": _exchanging(_reshape),
    "trans": _exchanging(_trans),
    "permute": _exchanging(_trans),
    "join": _exchanging(lambda a, b: shapes.join(as_tensor(a), as_tensor(b))),
    "split": _exchanging(shapes.split),
    "cat": _exchanging(lambda a, b, can_reorder=False, dim=0: shapes.cat(a, b, 0 if can_reorder else dim)),
    "item": lambda x: shapes.reshape(x, ()),
    "reduce": reductions.reduce,
    "associative_scan": reductions.scan,
    "_reduce_with_indices": _with_indices,
    "_promote_bfloat16_to_float32": _promoted,
    "histogram": _exchanging(reductions.histogram),
    "gather": _exchanging(reductions.gather),
    "make_block_ptr": lambda base, shape, strides, offsets, block_shape, order: blocks.make_block_pointer(
        base, shape, strides, offsets, block_shape
    ),
    "advance": lambda base, offsets: base.advanced(offsets),
    "make_tensor_descriptor": lambda base, shape, strides, block_shape, padding_option="zero": blocks.make_descriptor(
        base, shape, strides, block_shape, padding_option
    ),
    "load_tensor_descriptor": lambda desc, offsets: desc.load(offsets),
    "store_tensor_descriptor": lambda desc, offsets, value: desc.store(offsets, value),
    "tensor_descriptor": blocks.Descriptor,
    "block_type": TypeOfBlock,
    "dtype": DType,
    "constexpr_type": Constant,
    "void": None,
    "debug_barrier": lambda: machine().tell_meeting(),
    "num_warps": lambda: machine().num_warps,
    "num_threads": lambda: 32 * machine().num_warps,
    "async_task": lambda *_arguments, **_named: None,
    "gdc_wait": lambda: None,
    "gdc_launch_dependents": lambda: None,
    "globaltimer": lambda: _assembly("mov.u64 $0, %globaltimer;", "=l", [], DTYPES["int64"], False, 1),
    "smid": lambda: _assembly("mov.u32 $0, %smid;", "=r", [], DTYPES["int32"], True, 1),
    "convert_custom_float8_sm70": cast,
    "convert_custom_float8_sm80": cast,
    "multiple_of": _hint("multiple_of"),
    "max_contiguous": _hint("max_contiguous"),
    "max_constancy": _hint("max_constancy"),
    "assume": lambda condition: _hint("assume")(condition, True),
    "static_print": static_print,
    "static_assert": static_assert,
    "device_print": device_print,
    "device_assert": asserted,
    "builtin_max": _builtin_extreme(_maximum, max),
    "builtin_min": _builtin_extreme(_minimum, min),
}
FUNCTIONS["_experimental_make_tensor_descriptor"] = FUNCTIONS["make_tensor_descriptor"]


def _called_as_in_triton(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A function whose arguments may be given by Triton's names, where those are not its own."""

    def call(*arguments: Any, **named: Any) -> Any:
        for name in names[len(arguments) :] if named else ():
            if name not in named:
                break
            arguments = (*arguments, named.pop(name))
        return function(*arguments, **named)

    vars(call).update(like=function, names=names)
    return call


# Names of Triton's parameters, as far as they differ from the engine's.
_PARAMETERS: dict[tuple[str, ...], str] = {
    ("x",): "abs to_tensor ceil cos erf exp exp2 floor log log2 rsqrt sin sqrt sqrt_rn",
    ("x", "y"): "div_rn umulhi",
    ("x", "y", "z"): "fma",
    ("condition", "x", "y"): "where",
    ("input", "other"): "broadcast cat",
    ("input",): "broadcast_to reshape view trans permute",
    ("input", "axis"): "expand_dims",
    ("input", "dtype"): "cast",
    ("input", "values"): "max_constancy max_contiguous multiple_of",
    ("input", "axis", "combine_fn"): "associative_scan reduce",
    ("input", "num_bins"): "histogram",
    ("src", "index", "axis"): "gather",
    ("a",): "split",
    ("cond",): "assume",
    ("cond", "msg"): "device_assert static_assert",
    ("scalar_fn",): "map_elementwise",
}
FUNCTIONS |= {
    name: _called_as_in_triton(FUNCTIONS[name], parameters)
    for parameters, functions in _PARAMETERS.items()
    for name in functions.split()
}


# Methods of values that are called otherwise than the function.
METHOD_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "to": _cast,
    "logical_and": OPERATORS["and"],
    "logical_or": OPERATORS["or"],
}
