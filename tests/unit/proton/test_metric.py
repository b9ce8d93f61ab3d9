from __future__ import annotations

from typing import Any

import pytest

from bragg.proton.metric import plain_value, transform_tensor_metrics


class Tensor:
    """What is looked at in a tensor of PyTorch."""

    def __init__(self, values: list[Any], device: str = "cpu", address: int = 64) -> None:
        self.values = values
        self.device = type("Device", (), {"type": device})()
        self.address = address

    def tolist(self) -> Any:
        return self.values

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return len(self.values)

    def is_floating_point(self) -> bool:
        return isinstance(self.values[0], float)

    def double(self) -> Tensor:
        return Tensor([float(value) for value in self.values], self.device.type, self.address)

    def long(self) -> Tensor:
        return Tensor([int(value) for value in self.values], self.device.type, self.address)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("flops", 8, 8.0),
        ("flops16", [1, 2], [1.0, 2.0]),
        ("bytes", 8.0, 8),
        ("anything", 8, 8),
        ("anything", Tensor([5]), 5),
        ("flops8", Tensor([5, 6]), [5.0, 6.0]),
    ],
)
def test_operations_are_fractional_and_bytes_whole(key: str, value: Any, expected: Any) -> None:
    found = plain_value(key, value)
    assert found == expected
    assert type(found) is type(expected)


def test_tensors_of_a_device_are_kept_by_address_and_type() -> None:
    plain, on_device = transform_tensor_metrics(
        {"a": 1, "b": Tensor([1.0], "cuda", 128), "bytes": Tensor([1.0, 2.0], "cuda", 256)}
    )
    assert plain == {"a": 1}
    assert [(key, metric.ptr, metric.index, metric.size) for key, metric in on_device.items()] == [
        ("b", 128, 2, 1),
        ("bytes", 256, 5, 2),
    ]
