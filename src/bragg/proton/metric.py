"""Values of metrics: plain numbers, and tensors on a device, whose values are read later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "FLOPS_DTYPES",
    "FLOPS_WIDTHS",
    "ROOFLINE_DTYPES",
    "TensorMetric",
    "is_device_tensor",
    "plain_value",
    "set_metric_kernels",
    "transform_tensor_metrics",
]

FLOPS_WIDTHS = (8, 16, 32, 64)
# Rooflines are computed from these, so their type is fixed.
_TYPES: dict[str, type] = {"flops": float, **{f"flops{width}": float for width in FLOPS_WIDTHS}, "bytes": int}

# What `TensorMetric.index` says of the values.
INT64_INDEX, DOUBLE_INDEX, INT64_VECTOR_INDEX, DOUBLE_VECTOR_INDEX = 1, 2, 5, 6
# By name: type of a value, what `TensorMetric.index` says of one value, and of several.
ROOFLINE_DTYPES = {
    name: (int, INT64_INDEX, INT64_VECTOR_INDEX) if kind is int else (float, DOUBLE_INDEX, DOUBLE_VECTOR_INDEX)
    for name, kind in _TYPES.items()
}
FLOPS_DTYPES = {name: kinds for name, kinds in ROOFLINE_DTYPES.items() if name != "bytes"}


class TensorMetric:
    """Values in device memory.

    Attributes:
        ptr: Their address.
        index: Their type, one of the `metric_type_…_index` of `libproton`.
        size: How many there are.
    """

    def __init__(self, ptr: int, index: int, size: int = 1) -> None:
        self.ptr = ptr
        self.index = index
        self.size = size
        self.tensor: Any = None


def is_device_tensor(value: Any) -> bool:
    """Whether a value must be read from a device: a tensor of PyTorch, or an array that tells so by protocol."""
    device = getattr(value, "device", None)
    if hasattr(value, "data_ptr"):
        return str(getattr(device, "type", "cpu")) != "cpu"
    return hasattr(value, "__cuda_array_interface__")


def plain_value(key: str, value: Any) -> Any:
    """A value without its tensor or array, of the type that the metric must have.

    Args:
        key: The metric's name.
        value: Anything that is not on a device.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
    convert = _TYPES.get(key)
    if convert is None:
        return value
    return [convert(element) for element in value] if isinstance(value, (list, tuple)) else convert(value)


def transform_tensor_metrics(metrics: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, TensorMetric]]:
    """Metrics as plain values, and those that lie on a device."""
    plain: dict[str, Any] = {}
    on_device: dict[str, TensorMetric] = {}
    for key, value in metrics.items():
        if is_device_tensor(value):
            on_device[key] = _tensor_metric(key, value)
        else:
            plain[key] = plain_value(key, value)
    return plain, on_device


def set_metric_kernels() -> None:
    """Do nothing: no kernel is needed to read metrics."""


def _tensor_metric(key: str, tensor: Any) -> TensorMetric:
    whole = _TYPES[key] is int if key in _TYPES else not tensor.is_floating_point()
    tensor = tensor.long() if whole else tensor.double()
    scalar, vector = (INT64_INDEX, INT64_VECTOR_INDEX) if whole else (DOUBLE_INDEX, DOUBLE_VECTOR_INDEX)
    metric = TensorMetric(tensor.data_ptr(), vector if tensor.numel() > 1 else scalar, tensor.numel())
    metric.tensor = tensor  # It must live as long as its address is used.
    return metric
