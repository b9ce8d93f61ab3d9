from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.record.inside import metric_values
from bragg.record.inside.metric_values import MetricLabel, declare_beside, parse_label, plain_name, record_metrics


class Call(NamedTuple):
    """What reached the core: a metric as declared, and what was added to it."""

    metric: tuple[str, str, str, bool]
    value: Any


class Core:
    """The native core's part: metrics keep their type, and values are checked as the core does."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.metrics: list[tuple[str, str, str, bool]] = []
        self.is_recording = True

    def recording(self) -> bool:
        return self.is_recording

    def metric(self, name: str, kind: str, unit: str, is_float: bool) -> int:
        wanted = (name, kind, unit, is_float)
        known = [metric for metric in self.metrics if metric[0] == name]
        if known and known != [wanted]:
            raise ValueError(f"metric {name} exists with another type, kind or unit")
        if not known:
            self.metrics.append(wanted)
        return self.metrics.index(wanted)

    def add_value(self, metric: int, value: float) -> None:
        self._check(metric, value)
        self.calls.append(Call(self.metrics[metric], value))

    def add_vector(self, metric: int, values: list[float]) -> None:
        for value in values:
            self._check(metric, value)
        self.calls.append(Call(self.metrics[metric], values))

    def add_device_value(self, metric: int, *array: object) -> None:
        self.calls.append(Call(self.metrics[metric], array))

    def _check(self, metric: int, value: float) -> None:
        is_float = self.metrics[metric][3]
        assert is_float or type(value) is int
        if not is_float and not -(2**63) <= value < 2**63:
            raise OverflowError("int too big to convert")


@pytest.fixture(autouse=True)
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    core = Core()
    monkeypatch.setattr(metric_values, "core", core)
    monkeypatch.setattr(metric_values, "_ids", {})
    monkeypatch.setattr(metric_values, "_float_ids", {})
    monkeypatch.setattr(metric_values, "_plain_names", {})
    return core


Record = Callable[[object], Any]


@pytest.fixture
def recorded(core: Core) -> Record:
    """Records one value and gives what was added."""

    def recorded(value: object) -> Any:
        record_metrics({"m": value})
        return core.calls[-1].value if core.calls else None

    return recorded


@pytest.mark.parametrize(
    ("label", "parsed"),
    [
        ("flops", MetricLabel("flops", "", "inclusive")),
        ("flops (inc)", MetricLabel("flops", "", "inclusive")),
        ("latency (us)(exc)", MetricLabel("latency", "us", "exclusive")),
        (" latency  (us)  (exc) ", MetricLabel("latency", "us", "exclusive")),
        ("latency(us)", MetricLabel("latency", "us", "inclusive")),
        ("tile (pty)", MetricLabel("tile", "", "property")),
        ("bytes/s (GB/s)(pty)", MetricLabel("bytes/s", "GB/s", "property")),
        ("f(x) of y", MetricLabel("f(x) of y", "", "inclusive")),
    ],
)
def test_label_says_name_unit_and_kind(label: str, parsed: MetricLabel) -> None:
    assert parse_label(label) == parsed


@pytest.mark.parametrize("label", ["", "  ", "(us)", "(exc)", "(us)(exc)", 7, None])
def test_label_without_a_name_is_refused(label: str) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        parse_label(label)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'latency \(us\)\(avg\)' has more in parentheses"):
        parse_label("latency (us)(avg)")


def test_metrics_are_declared_once_as_their_first_value_says(core: Core) -> None:
    for _ in range(3):
        record_metrics({"loss (pty)": 0.5, "tokens": 3})
    assert core.metrics == [("loss", "property", "", True), ("tokens", "inclusive", "", False)]
    assert [call.value for call in core.calls] == [0.5, 3] * 3


def test_two_spellings_are_one_metric(core: Core) -> None:
    record_metrics({"t (us)(exc)": 1.0})
    record_metrics({"t (us) (exc)": 2.0})
    assert [call.metric for call in core.calls] == [("t", "exclusive", "us", True)] * 2


def test_metric_beside_one_of_its_name_has_a_number(core: Core) -> None:
    label = MetricLabel("n", "", "inclusive")
    assert [declare_beside(label, types) for types in ((False, True), (True,), (True,), (False, True))] == [
        (0, False),
        (1, True),
        (1, True),
        (0, False),
    ]
    assert declare_beside(label._replace(unit="us"), (False, True)) == (2, False)
    assert [metric[0] for metric in core.metrics] == ["n", "n#2", "n#3"]
    assert [plain_name(name) for name in ("n", "n#2", "n#3[4]", "m#2", "m[0]")] == ["n", "n", "n[4]", "m#2", "m[0]"]


def test_metric_of_floats_takes_integers(core: Core) -> None:
    record_metrics({"loss": 0.5})
    record_metrics({"loss": 2, "other": 1})
    assert [call.value for call in core.calls] == [0.5, 2, 1]
    assert core.metrics == [("loss", "inclusive", "", True), ("other", "inclusive", "", False)]


def test_metric_of_integers_refuses_floats() -> None:
    record_metrics({"loss": 0})
    with pytest.raises(UsageError, match="metric loss exists with another type") as caught:
        record_metrics({"loss": 0.5})
    assert "float" in caught.value.hint


def test_metric_keeps_its_unit() -> None:
    record_metrics({"latency (us)": 1})
    with pytest.raises(UsageError, match="another type, kind or unit"):
        record_metrics({"latency (ms)": 1})


def test_nothing_is_looked_at_while_nothing_records(core: Core) -> None:
    core.is_recording = False
    record_metrics({"(": object()})
    assert core.calls == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, 1),
        (IntEnum("Size", {"large": 7}).large, 7),  # type: ignore[attr-defined]
        (np.int8(-3), -3),
        (np.bool_(True), 1),
        (np.array(5), 5),
        (np.uint64(7), 7),
        (1.5, 1.5),
        (np.float32(0.5), 0.5),
        (np.float64(0.25), 0.25),
        (np.array(2.5, np.float16), 2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
    ],
)
def test_every_kind_of_number_is_taken(value: object, expected: float, recorded: Record) -> None:
    assert recorded(value) == expected
    assert type(recorded(value)) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, 2], [1, 2]),
        ((1, 2.5), [1, 2.5]),
        (range(3), [0, 1, 2]),
        ([np.float32(0.5), True], [0.5, 1]),
        (np.array([1, 2], np.int16), [1, 2]),
        (np.array([0.5, 1.0]), [0.5, 1.0]),
        (np.arange(6)[::2], [0, 2, 4]),
    ],
)
def test_sequences_and_arrays_are_vectors(value: object, expected: list[float], recorded: Record) -> None:
    assert recorded(value) == expected


def test_empty_sequence_records_nothing(recorded: Record) -> None:
    assert recorded([]) is recorded(np.array([])) is None


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("3", "str"),
        (b"3", "bytes"),
        (None, "NoneType"),
        (1j, "complex"),
        (np.complex64(1), "complex"),
        ([1, "2"], "str"),
        ([[1], [2]], "list"),
        ({"a": 1}, "dict"),
        (object(), "object"),
        (np.datetime64("2020-01-01"), "date"),
    ],
)
def test_what_is_no_number_is_refused(value: object, what: str, recorded: Record) -> None:
    with pytest.raises(UsageError, match=f"^metric 'm' takes a number, .* not {what}$"):
        recorded(value)


@pytest.mark.parametrize("value", [np.zeros((2, 2)), np.zeros((1, 1), bool)])
def test_array_of_several_dimensions_is_refused(value: object, recorded: Record) -> None:
    with pytest.raises(UsageError, match="at most one dimension, not 2"):
        recorded(value)


@pytest.mark.parametrize("value", [2**63, [2**63], np.uint64(2**64 - 1)])
def test_integer_beyond_64_bits_is_refused(value: object, recorded: Record) -> None:
    with pytest.raises(UsageError, match="too large"):
        recorded(value)


class Tensor:
    """A tensor of PyTorch, as far as it is looked at."""

    def __init__(self, shape: tuple[int, ...] = (), dtype: str = "float32", device: str = "cuda", **kept: Any) -> None:
        self.shape = shape
        self.dtype = f"torch.{dtype}"
        self.device = SimpleNamespace(type=device)
        self.is_cuda = device == "cuda"
        self.is_negative = bool(kept.get("is_negative"))
        self.step = kept.get("step", 1)
        self.numbers = kept.get("numbers")

    def dim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def stride(self, dimension: int) -> int:
        assert dimension == 0
        return int(self.step)

    def data_ptr(self) -> int:
        return 0 if self.shape == (0,) else 0x1000 + self.is_negative

    def get_device(self) -> int:
        return 1

    def is_floating_point(self) -> bool:
        return "float" in self.dtype

    def long(self) -> Tensor:
        return Tensor(self.shape, "int64")

    def is_neg(self) -> bool:
        return self.is_negative

    def resolve_neg(self) -> Tensor:
        return Tensor(self.shape)

    def tolist(self) -> Any:
        if self.numbers is None:
            raise NotImplementedError("Cannot access data\nof this tensor")
        return self.numbers


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    current = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0x5000 + device)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=current))


def test_tensor_on_a_gpu_is_read_there_in_the_current_stream_of_its_device(core: Core, recorded: Record) -> None:
    assert recorded(Tensor()) == (0x1000, "f32", 0, 1, 0x5001)
    assert core.calls[0].metric == ("m", "inclusive", "", True)


def test_tensor_with_a_stride_is_read_where_it_is(recorded: Record) -> None:
    assert recorded(Tensor((4,), step=3)) == (0x1000, "f32", 4, 3, 0x5001)


def test_tensor_of_integers_is_a_metric_of_integers(core: Core, recorded: Record) -> None:
    assert recorded(Tensor(dtype="int64")) == (0x1000, "i64", 0, 1, 0x5001)
    assert core.metrics == [("m", "inclusive", "", False)]


def test_operations_on_a_gpu_are_fractional_and_bytes_whole(core: Core) -> None:
    record_metrics({"flops16": Tensor(dtype="int64"), "bytes": Tensor()})
    record_metrics({"flops16": 0.5, "bytes": 8})
    assert [(call.metric[0], call.metric[3]) for call in core.calls] == [("flops16", True), ("bytes", False)] * 2


def test_tensor_whose_sign_is_not_in_memory_is_resolved(recorded: Record) -> None:
    assert recorded(Tensor(is_negative=True))[0] == 0x1000


def test_empty_tensor_records_nothing(recorded: Record) -> None:
    assert recorded(Tensor((0,))) is None


def test_tensor_on_the_cpu_is_its_numbers(recorded: Record) -> None:
    assert recorded(Tensor(device="cpu", numbers=0.5)) == 0.5
    assert recorded(Tensor((2,), device="cpu", numbers=[1.5, 2.5])) == [1.5, 2.5]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor((2, 2)), "at most one dimension, not 2"),
        (Tensor(dtype="complex64"), "as torch.complex64"),
        (Tensor(device="mps"), "cannot be read on"),
        (Tensor(device="cpu"), "'m': Cannot access data$"),
        ([Tensor()], "not Tensor"),
    ],
)
def test_tensor_that_cannot_be_read_is_refused(tensor: object, message: str, recorded: Record) -> None:
    with pytest.raises(UsageError, match=message):
        recorded(tensor)


def test_refusal_of_the_core_names_the_metric(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("the metric value is on another GPU than the stream")

    monkeypatch.setattr(core, "add_device_value", refuse)
    with pytest.raises(UsageError, match="metric 'loss': the metric value is on another GPU"):
        record_metrics({"loss": Tensor()})


def interface(**changes: object) -> object:
    described = {"data": (0x2000, False), "typestr": "<f8", "shape": (), "strides": None, "version": 3, **changes}
    return SimpleNamespace(__cuda_array_interface__=described)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (interface(), (0x2000, "f64", 0, 1, 0)),
        (interface(stream=0x77), (0x2000, "f64", 0, 1, 0x77)),
        (interface(shape=(3,), typestr="<i4"), (0x2000, "i32", 3, 1, 0)),
        (interface(shape=(3,), typestr="<f2", strides=(-8,)), (0x2000, "f16", 3, -4, 0)),
        (interface(typestr="|b1"), (0x2000, "bool", 0, 1, 0)),
    ],
)
def test_cuda_array_interface_is_read(array: object, expected: tuple[object, ...], recorded: Record) -> None:
    assert recorded(array) == expected


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (interface(shape=(2, 2)), "at most one dimension"),
        (interface(typestr="<c8"), "as <c8"),
        (interface(typestr=">f8"), "as >f8"),
        (interface(shape=(2,), strides=(12,)), "not aligned"),
    ],
)
def test_cuda_array_that_cannot_be_read_is_refused(array: object, message: str, recorded: Record) -> None:
    with pytest.raises(UsageError, match=message):
        recorded(array)


def test_empty_cuda_array_records_nothing(recorded: Record) -> None:
    assert recorded(interface(shape=(0,))) is None


def test_array_of_cupy_is_read_in_its_current_stream(monkeypatch: pytest.MonkeyPatch, recorded: Record) -> None:
    stream = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0x99))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=stream))
    array = type(
        "ndarray", (), {"__module__": "cupy", "__cuda_array_interface__": vars(interface())["__cuda_array_interface__"]}
    )()
    assert recorded(array) == (0x2000, "f64", 0, 1, 0x99)


def test_array_of_jax_is_read_through_numpy(recorded: Record) -> None:
    class Array:
        __module__ = "jaxlib._jax"
        ndim = 1

        @property
        def __cuda_array_interface__(self) -> object:
            raise AssertionError("would be read before it is computed")

        def tolist(self) -> list[float]:
            return [1.5]

    assert recorded(Array()) == [1.5]
