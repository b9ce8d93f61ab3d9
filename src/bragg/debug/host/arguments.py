"""Arguments of a launch: what a kernel gets for what the host passed."""

from __future__ import annotations

import inspect
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from bragg.debug.flow.aggregates import rebuilt
from bragg.debug.foreign import translated
from bragg.debug.host.device_arrays import DeviceArrays
from bragg.debug.host.pytorch.host_tensors import HOST_TENSORS
from bragg.debug.memory.arrays import buffer_at, host_buffer, is_of_torch, own_type
from bragg.debug.memory.blocks import make_descriptor
from bragg.debug.memory.storage import Buffer
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType, dtype_of_array
from bragg.debug.values import Pointer, Tensor, scalar
from bragg.errors import UsageError

_NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating)
# Triton's short names of types, as annotations and signatures of compiled kernels have them.
TYPE_NAMES = {
    **{f"i{bits}": DTYPES[f"int{bits}"] for bits in (1, 8, 16, 32, 64)},
    **{f"u{bits}": DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64)},
    "u1": DTYPES["int1"],
    **{name: dtype for name, dtype in DTYPES.items() if dtype.is_floating()},
}


# How Triton's types of pointers begin that are annotated `tl.const`.
CONSTANT = "*k"


class NumberTooLarge(UsageError, OverflowError):  # noqa: N818
    """An argument that no type of Triton holds; Triton raises an OverflowError."""


class TensorOnHost(UsageError, ValueError):  # noqa: N818
    """A tensor that the GPU cannot access; Triton raises a ValueError."""


class ParameterMissing(UsageError, TypeError):  # noqa: N818
    """Arguments that do not fit the parameters; Triton raises a TypeError."""


class ParameterUnknown(UsageError, KeyError):  # noqa: N818
    """A name that is no parameter's; Triton raises a KeyError."""

    __str__ = Exception.__str__  # A KeyError's is in quotes.


class Arguments:
    """Converts the arguments of one launch.

    Attributes:
        buffers: The tensors, in the order of the parameters.

    Args:
        is_on_gpu: The kernel is for one, and not for Triton's interpreter.
    """

    def __init__(self, *, is_on_gpu: bool = True) -> None:
        self._is_on_gpu = is_on_gpu
        self.buffers: list[Buffer] = []
        self._host_copies: dict[int, tuple[Any, Any]] = {}
        self._device_arrays = DeviceArrays()

    def convert(self, name: str, value: Any, type_name: str = "") -> Any:
        """The kernel's value of a parameter that is not a constant.

        Args:
            name: Of the parameter.
            value: What the host passes.
            type_name: The type it is given, as Triton writes it; empty: the one that its value suggests.

        Raises:
            UsageError: Triton does not take such an argument.
        """
        if value is None or isinstance(value, str):
            return value
        if type_name in TYPE_NAMES and isinstance(value, _NUMBERS):
            return _number_of_type(value, TYPE_NAMES[type_name], name)
        if isinstance(value, bool | np.bool_):
            return scalar(bool(value))
        if isinstance(value, int | np.integer):
            return _integer(int(value), name)
        if isinstance(value, float | np.floating):
            return scalar(float(value), DTYPES["fp32"])
        if isinstance(value, tuple):
            names = getattr(value, "_fields", range(len(value)))
            parts = [self.convert(f"{name}[{k}]", part) for k, part in zip(names, value, strict=True)]
            return rebuilt(value, parts) if hasattr(value, "_fields") else tuple(parts)
        if type(value).__name__ == "TensorDescriptor":
            return self._descriptor(name, value)
        if type(value).__name__ == "TensorWrapper":
            return self._wrapped(name, value)
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            pointer = self._tensor(name, value)
            pointer.buffer.is_constant = type_name.startswith(CONSTANT)
            return pointer
        converted = translated(value, name)
        if converted is value:
            raise UsageError(f"the argument {name} is {type(value).__name__}, which a kernel does not take")
        return converted

    @property
    def has_copies(self) -> bool:
        """Some tensors are in other memory, and the kernel gets copies."""
        return bool(self._host_copies) or self._device_arrays.has_copies

    def copy_back(self) -> None:
        """Write what the kernel changed to tensors that are not in host memory."""
        for device, host in self._host_copies.values():
            device.copy_(host)
        self._device_arrays.copy_back()

    def _wrapped(self, name: str, value: Any) -> Pointer:
        """What `triton.reinterpret` gives: a tensor seen with another type, Triton's or PyTorch's."""
        dtype = translated(value.dtype)
        if not isinstance(dtype, DType):
            dtype = dtype_of_array(str(value.dtype).removeprefix("torch."))
        return self._tensor(name, value.base, dtype)

    def _descriptor(self, name: str, value: Any) -> Any:
        is_wrapped = type(value.base).__name__ == "TensorWrapper"
        base = self._wrapped(name, value.base) if is_wrapped else self._tensor(name, value.base)
        padding = getattr(value, "padding", "zero")
        layout = getattr(value, "layout", None)
        shape, strides, block_shape = tuple(value.shape), tuple(value.strides), tuple(value.block_shape)
        return make_descriptor(base, shape, strides, block_shape, padding, layout, is_of_host=True)

    def _tensor(self, name: str, value: Any, dtype: DType | None = None) -> Pointer:
        while type(value).__name__ == "TensorWrapper":
            value = value.base
        with _without_modes(value):
            return self._pointer(name, value, dtype)

    def _pointer(self, name: str, value: Any, dtype: DType | None) -> Pointer:
        is_torch = is_of_torch(value)
        own = own_type(value.dtype)
        dtype = dtype or own
        if dtype is None:
            raise UsageError(
                f"the argument {name} has elements of {value.dtype}, which Triton does not have",
                hint="Pass it as another type: torch.view_as_real for complex numbers, .view or .to for others",
            )
        own = own or dtype
        if not is_torch and hasattr(value, "__cuda_array_interface__"):
            value = self._device_arrays.on_host(name, value)
        stored = dtype if own.size_bytes == dtype.size_bytes else own
        buffer = self._torch_buffer(name, value, stored) if is_torch else host_buffer(name, value, stored)
        buffer = buffer.seen_as(dtype)
        self.buffers.append(buffer)
        return Pointer(buffer, scalar(0, DTYPES["int64"]), dtype)

    def _torch_buffer(self, name: str, value: Any, dtype: DType) -> Buffer:
        if self._is_on_gpu and HOST_TENSORS.are_refused and value in HOST_TENSORS:
            raise TensorOnHost(
                f"the argument {name} is a tensor on the CPU, which a kernel on a GPU cannot access",
                hint=f"Pass {name} where the GPU is: {name}.to('cuda'), or leave out what moves it to the CPU",
            )
        if value.device.type != "cpu":
            device = value.untyped_storage()
            if device.data_ptr() not in self._host_copies:
                self._host_copies[device.data_ptr()] = (device, device.cpu())
            host = self._host_copies[device.data_ptr()][1]
            address = host.data_ptr() + (value.data_ptr() - device.data_ptr())
            return buffer_at(name, dtype, address, tuple(value.shape), tuple(value.stride()), host)
        return host_buffer(name, value, dtype)


def _without_modes(value: Any) -> AbstractContextManager[None]:
    """A plain tensor of PyTorch answers itself, which takes a tenth of the time."""
    torch = sys.modules.get("torch")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        disabled: AbstractContextManager[None] = torch._C.DisableTorchFunction()
        return disabled
    return nullcontext()


def _number_of_type(value: Any, dtype: DType, name: str) -> Tensor:
    """A number as the launcher of a kernel packs it for a type that the kernel fixes."""
    if dtype.is_floating():
        return cast(scalar(float(value), DTYPES["fp64"]), dtype)  # type: ignore[no-any-return]
    if isinstance(value, float | np.floating):
        raise UsageError(f"the argument {name} is {value}, and the kernel takes {dtype}", hint="Pass an integer")
    if dtype.bits == 1:
        return scalar(bool(value))
    low, high = dtype.limits
    if dtype.signed and not low <= value <= high:
        raise UsageError(f"the argument {name} is {value}, out of the range of {dtype}")
    return scalar(int(value) & high if not dtype.signed else int(value), dtype)


def _integer(value: int, name: str) -> Tensor:
    """Triton's choice for integers that the host passes: the first of int32, int64, uint64 that holds the number."""
    for type_name in ("int32", "int64", "uint64"):
        low, high = DTYPES[type_name].limits
        if low <= value <= high:
            return scalar(value, DTYPES[type_name])
    raise NumberTooLarge(f"the argument {name} is {value}, which no integer type of Triton holds")


# Arguments of a launch that tune the compiler and do not reach the kernel.
_OPTIONS = frozenset(
    [
        "num_warps",
        "num_stages",
        "num_ctas",
        "num_buffers_warp_spec",
        "num_consumer_groups",
        "reg_dec_producer",
        "reg_inc_consumer",
        "maxnreg",
        "enable_fp_fusion",
        "launch_cooperative_grid",
        "launch_cluster",
        "launch_pdl",
        "debug",
        "sanitize_overflow",
        "arch",
        "warmup",
        "waves_per_eu",
        "matrix_instr_nonkdim",
        "kpack",
        "allow_flush_denorm",
        "max_num_imprecise_acc_default",
        "extern_libs",
        "instrumentation_mode",
        "backend_name",
        "supported_fp8_dtypes",
        "default_dot_input_precision",
        "ir_override",
        "cluster_dims",
        "minRegAutoWS",
        "maxRegAutoWS",
        "pingpongAutoWS",
        "schedule_hint",
        "ptx_options",
        "noinline",
    ]
)


class Parameters:
    """Those of a function, as launches give them.

    Attributes:
        signature: As Python has it.
        names: In their order; empty when not all may be given by position.
        defaults: By name.
    """

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        given = self.signature.parameters.values()
        is_plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in given)
        self.names = tuple(one.name for one in given) if is_plain else ()
        self.defaults = {one.name: one.default for one in given if one.default is not one.empty}


def _bound_plainly(parameters: Parameters, given: tuple[Any, ...], own: dict[str, Any]) -> dict[str, Any] | None:
    """What `signature.bind` gives in the plain case, ten times as fast; None: it is none, or something is wrong."""
    names, count = parameters.names, len(given)
    if count > len(names) or not own.keys().isdisjoint(names[:count]):
        return None
    values = {**parameters.defaults, **dict(zip(names, given, strict=False)), **own}
    return {name: values[name] for name in names} if len(values) == len(names) else None


def bound(parameters: Parameters, arguments: tuple[Any, ...], named: dict[str, Any], kernel: str) -> dict[str, Any]:
    """Parameter names and what the host passed for them, defaults included.

    Raises:
        ParameterMissing: An argument is missing, or there are too many.
        ParameterUnknown: A name is not one of the kernel's.
    """
    signature = parameters.signature
    unknown = [name for name in named if name not in signature.parameters and name not in _OPTIONS]
    if unknown:
        has = f"It has: {', '.join(signature.parameters)}"
        raise ParameterUnknown(f"{kernel} has no parameter {unknown[0]!r}", hint=has)
    own = {name: value for name, value in named.items() if name in signature.parameters}
    quick = _bound_plainly(parameters, arguments, own)
    if quick is not None:
        return quick
    try:
        values = signature.bind(*arguments, **own)
    except TypeError as error:
        takes = f"It takes: {', '.join(signature.parameters)}"
        raise ParameterMissing(f"{kernel}: {error}", hint=takes) from None
    values.apply_defaults()
    return dict(values.arguments)
