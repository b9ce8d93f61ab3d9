"""Values of the program's own metrics, whatever holds them, for the native core."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from bragg.core import core
from bragg.errors import UsageError

_LABEL = re.compile(
    r"\s*(?P<name>.*?)\s*"
    r"(?:\((?P<unit>(?!(?:inc|exc|pty)\))[^()]*)\))?\s*"
    r"(?:\((?P<kind>inc|exc|pty)\))?\s*"
)
_ELEMENT = re.compile(r"(.+)(\[\d+\])")  # of a vector
_KINDS = {None: "inclusive", "inc": "inclusive", "exc": "exclusive", "pty": "property"}

# What the core calls the dtypes of PyTorch, and those of the CUDA array interface without their byte order.
_TORCH_DTYPES = {
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.int8": "i8",
    "torch.int16": "i16",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.uint8": "u8",
    "torch.bool": "bool",
}
_INTERFACE_DTYPES = {
    "f2": "f16",
    "f4": "f32",
    "f8": "f64",
    "i1": "i8",
    "i2": "i16",
    "i4": "i32",
    "i8": "i64",
    "u1": "u8",
    "b1": "bool",
}
_EXACT = {int, float}
_FLOAT_DTYPES = {"f16", "bf16", "f32", "f64"}

# Ids by label, so that a known metric costs one look-up: those that hold floating point numbers, and all.
_float_ids: dict[str, int] = {}
# What the program calls metrics whose names in the core have a number.
_plain_names: dict[str, str] = {}
_ids: dict[str, int] = {}


class MetricLabel(NamedTuple):
    """Name, unit and kind in a label like `latency (us)(exc)`.

    Attributes:
        name: `latency`.
        unit: `us`; empty when there is none.
        kind: inclusive, exclusive or property.
    """

    name: str
    unit: str
    kind: str


class DeviceArray(NamedTuple):
    """Numbers in GPU memory, as `core.add_device_value` takes them."""

    pointer: int
    dtype: str
    length: int
    stride: int
    stream: int


def record_metrics(metrics: Mapping[str, Any]) -> None:
    """Add values to metrics of the innermost open scope, else of where this thread is. No-op while nothing records.

    Arrays on a GPU are read there, in the order of the current stream (`torch.cuda.current_stream()` and the like):
    this does not wait for the stream or the device, and an array may be freed right after, as any kernel's argument.
    In a stream that is being captured into a CUDA graph they are read, and counted, at each replay. Arrays of JAX are
    the exception: they are read through numpy, which waits until they are computed.

    Args:
        metrics: Labels `name (unit)(kind)`, where the unit and the kind may be left out and the kind is `inc`
            (inclusive, the default), `exc` (exclusive) or `pty` (property: the last value counts), to values: numbers,
            sequences of numbers, arrays and tensors of at most one dimension on the CPU or a GPU. A metric holds
            integers if its first value is one.

    Raises:
        UsageError: A label or a value that cannot be understood. The metrics before it were recorded.
    """
    if not core.recording():
        return
    for label, value in metrics.items():
        if type(value) in _EXACT:
            _add_number(label, value)
        else:
            _record(label, value)


def parse_label(label: str) -> MetricLabel:
    """Split `name (unit)(kind)`.

    Raises:
        UsageError: There is no name, or more in parentheses than a unit and a kind.
    """
    found = _LABEL.fullmatch(label) if isinstance(label, str) else None
    if found is None or not found["name"]:
        raise UsageError(f"a metric needs a name, not {label!r}", hint="For example: flops, or latency (us)(exc)")
    if found["name"].endswith(")"):
        raise UsageError(
            f"metric {label!r} has more in parentheses than a unit and a kind",
            hint="The kind is (inc), (exc) or (pty); for example: latency (us)(exc)",
        )
    return MetricLabel(found["name"], found["unit"] or "", _KINDS[found["kind"]])


def declare_beside(label: MetricLabel, holds_floats: Sequence[bool]) -> tuple[int, bool]:
    """A metric beside those that have its name with another unit, kind or type: its own name has a number then.

    Args:
        label: As the program names it.
        holds_floats: Types that will do, the best one first.

    Returns:
        Its id, and whether it holds floating point numbers.
    """
    for number in itertools.count(1):
        name = label.name if number == 1 else f"{label.name}#{number}"
        for is_float in holds_floats:
            with suppress(ValueError):
                found = core.metric(name, label.kind, label.unit, is_float)
                _plain_names[name] = label.name
                return found, is_float
    raise AssertionError("some number is free")


def plain_name(name: str) -> str:
    """Name that the program gave to a metric of the core."""
    element = _ELEMENT.fullmatch(name)
    return _plain_names.get(name) or (f"{plain_name(element[1])}{element[2]}" if element else name)


def _id_of(label: str, *, is_float: bool) -> int:
    """The id of a metric that takes such numbers: one that holds floating point numbers takes integers too."""
    known = (_float_ids if is_float else _ids).get(label)
    return _declare(label, is_float=is_float) if known is None else known


def _declare(label: str, *, is_float: bool) -> int:
    name, unit, kind = parse_label(label)
    reason = ""
    for holds_floats in (True,) if is_float else (False, True):
        try:
            found = core.metric(name, kind, unit, holds_floats)
        except ValueError as error:
            reason = str(error)
            continue
        _ids[label] = found
        if holds_floats:
            _float_ids[label] = found
        return found
    hint = "A metric keeps the unit, the kind and the type of its first value; give that as a float to allow both types"
    raise UsageError(reason, hint=hint)


def _add_number(label: str, value: float) -> None:
    is_float = isinstance(value, float)
    metric = (_float_ids if is_float else _ids).get(label)
    if metric is None:
        metric = _declare(label, is_float=is_float)
    try:
        core.add_value(metric, value)
    except OverflowError:
        raise UsageError(f"metric {label!r}: {value} is too large", hint="Give it as a float") from None


def _record(label: str, value: Any) -> None:
    """Add what is not a plain float or int."""
    if isinstance(value, (list, tuple)):
        _add_vector(label, value)
    elif hasattr(value, "data_ptr"):
        _record_tensor(label, value)
    elif not _is_of(value, "jax") and hasattr(value, "__cuda_array_interface__"):
        _record_device_array(label, _array_of_interface(label, value))
    elif hasattr(value, "ndim") and hasattr(value, "tolist"):
        _check_dimensions(label, value.ndim)
        _record_plain(label, value.tolist())
    else:
        _record_plain(label, value)


def _record_plain(label: str, value: Any) -> None:
    """Add a number or a sequence of numbers in the memory of Python."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        _add_vector(label, value)
    else:
        _add_number(label, _number(label, value))


def _add_vector(label: str, values: Sequence[Any]) -> None:
    numbers = [each if type(each) in _EXACT else _number(label, each) for each in values]
    if not numbers:
        return
    metric = _id_of(label, is_float=float in map(type, numbers))
    try:
        core.add_vector(metric, numbers)
    except OverflowError:
        raise UsageError(f"metric {label!r}: a number is too large", hint="Give it as a float") from None


def _number(label: str, value: Any) -> float:
    """An int or a float that says the same.

    Raises:
        UsageError: It is not a number.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, complex) or hasattr(value, "data_ptr") or hasattr(value, "__len__"):
        _refuse(label, value)
    try:
        return int(value.__index__()) if hasattr(value, "__index__") else float(value.__float__())
    except (AttributeError, TypeError, ValueError):
        _refuse(label, value)


def _refuse(label: str, value: Any) -> NoReturn:
    raise UsageError(
        f"metric {label!r} takes a number, a sequence of numbers or an array of at most one dimension, "
        f"not {type(value).__name__}"
    )


def _check_dimensions(label: str, count: int) -> None:
    if count > 1:
        raise UsageError(
            f"metric {label!r} takes an array of at most one dimension, not {count}",
            hint="Reduce it first, for example with .sum(), or flatten it",
        )


def _is_of(value: Any, package: str) -> bool:
    return type(value).__module__.partition(".")[0].startswith(package)


def _record_tensor(label: str, tensor: Any) -> None:
    """Add a tensor of PyTorch, on the CPU or a GPU."""
    _check_dimensions(label, tensor.dim())
    try:
        if tensor.is_cuda:
            tensor = tensor.long() if label == "bytes" and tensor.is_floating_point() else tensor
            _record_device_array(label, _array_of_tensor(label, tensor))
        elif tensor.device.type == "cpu":
            _record_plain(label, tensor.tolist())
        else:
            raise UsageError(f"metric {label!r} cannot be read on {tensor.device}", hint="Copy it to the CPU first")
    except (RuntimeError, NotImplementedError) as error:  # sparse, fake and the like
        raise UsageError(f"metric {label!r}: {_first_line(error)}") from error


def _array_of_tensor(label: str, tensor: Any) -> DeviceArray:
    dtype = _TORCH_DTYPES.get(str(tensor.dtype))
    if dtype is None:
        raise UsageError(f"metric {label!r} cannot be read from a GPU as {tensor.dtype}", hint="Convert it first")
    if tensor.is_neg():  # a view whose sign is not in memory
        tensor = tensor.resolve_neg()
    stream = sys.modules["torch"]._C._cuda_getCurrentRawStream(tensor.get_device())
    if tensor.dim() == 0:
        return DeviceArray(tensor.data_ptr(), dtype, 0, 1, stream)
    return DeviceArray(tensor.data_ptr(), dtype, len(tensor), tensor.stride(0), stream)


def _array_of_interface(label: str, array: Any) -> DeviceArray:
    """The CUDA array interface, version 3: CuPy, Numba and others."""
    interface = array.__cuda_array_interface__
    shape, typestr, strides = interface["shape"], interface["typestr"], interface.get("strides")
    _check_dimensions(label, len(shape))
    dtype = _INTERFACE_DTYPES.get(typestr[1:])
    if dtype is None or typestr[0] == ">":
        raise UsageError(f"metric {label!r} cannot be read from a GPU as {typestr}", hint="Convert it first")
    stride, rest = divmod(strides[0], int(typestr[2:])) if strides else (1, 0)
    if rest:
        raise UsageError(f"metric {label!r} has elements that are not aligned", hint="Copy the array first")
    length = shape[0] if shape else 0
    pointer = interface["data"][0] if shape != (0,) else 0
    return DeviceArray(pointer, dtype, length, stride, _stream_of_interface(array, interface.get("stream")))


def _stream_of_interface(array: Any, stream: int | None) -> int:
    """The stream that an array is ready in: the one it tells, its library's current one, or the default stream."""
    if stream is not None:
        return stream
    if _is_of(array, "cupy"):
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0


def _record_device_array(label: str, array: DeviceArray) -> None:
    if array.pointer == 0:  # of no elements
        return
    metric = _id_of(label, is_float=array.dtype in _FLOAT_DTYPES or label.startswith("flops"))
    try:
        core.add_device_value(metric, *array)
    except RuntimeError as error:
        raise UsageError(f"metric {label!r}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
