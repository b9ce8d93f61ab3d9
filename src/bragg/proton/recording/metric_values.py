"""Recording values of metrics that users name as in Proton: `name (unit)(kind)`."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from bragg.core import core
from bragg.errors import UsageError
from bragg.proton.errors import InvalidMetric
from bragg.proton.metric import is_device_tensor, plain_value
from bragg.proton.recording import open_scopes, timed_values
from bragg.proton.upstream import INTEGER_TYPE
from bragg.record.inside.metric_values import MetricLabel, declare_beside, parse_label, record_metrics

__all__ = ["TEXT_UNIT", "forget_types", "record", "text_of"]

# The core holds numbers: a text is the number of a row of `_texts`, in a metric of this unit.
TEXT_UNIT = "text"


@dataclass(frozen=True)
class _Known:
    """A metric that was recorded since the last session ended.

    Attributes:
        number: How many were known before it.
        type_name: C++ type of its values.
        id: Of the core's metric.
        path: Of the scope that had the first of them.
    """

    number: int
    type_name: str
    id: int
    path: tuple[str, ...]


_TEXT = "std::string"
_ENDINGS = {"(exc)": "exclusive", "(pty)": "property"}

_MAX_INTEGER = 2**63 - 1

_lock = threading.Lock()
# By name and by type; without a type, the first one of the name.
_known: dict[tuple[str, str], _Known] = {}
# Lengths of vectors, by name and path of the scope.
_lengths: dict[tuple[str, tuple[str, ...]], int] = {}
_texts: list[str] = []


def record(metrics: Mapping[str, Any]) -> None:
    """Add values to the innermost scope of this thread.

    Raises:
        InvalidMetric: A value has no name, is not a number, text, list or tensor, or has another type than those the
            scope has of the metric.
    """
    if not core.recording():
        return
    if not isinstance(metrics, Mapping):
        raise InvalidMetric(f"metrics have names: {metrics!r} has none", hint='For example: {"flops": 1e9}')
    recorded = {}
    for key, value in metrics.items():
        if not isinstance(key, str):
            raise InvalidMetric(f"metric {key!r} has a name of type {type(key).__name__}", hint="Names are texts")
        if is_device_tensor(value):
            _record_on_device(key, value)
        else:
            recorded[key] = _record_on_host(key, value)
    timed_values.note(recorded)


def forget_types() -> None:
    """Let every metric have values of any type again, as in a new session."""
    with _lock:
        _known.clear()
        _lengths.clear()


def text_of(number: float) -> str:
    """The text that a value of a metric of unit `TEXT_UNIT` stands for."""
    return _texts[int(number)]


def _record_on_host(key: str, value: Any) -> Any:
    """Record a value, and return it as a plain number, list or text."""
    try:
        plain = plain_value(key, value)
        _record(key, plain)
    except UsageError:
        raise
    except OverflowError as error:
        raise InvalidMetric(f"metric {key!r} has a value that no 64 bits hold", hint="Give it a smaller one") from error
    except (TypeError, ValueError) as error:  # of `bytes`, which is a whole number, and of `flops`
        raise InvalidMetric(f"metric {key!r} has the value {value!r}: {error}", hint="Give it a number") from error
    return plain


def _record(key: str, value: Any) -> None:
    if isinstance(value, str):
        core.add_value(_find(key, _TEXT).id, _text_number(value))
    elif isinstance(value, Integral) and abs(int(value)) <= _MAX_INTEGER:
        core.add_value(_find(key, INTEGER_TYPE).id, int(value))
    elif isinstance(value, Real):
        core.add_value(_find(key, "double").id, float(value))
    elif _is_vector(value):
        whole = all(isinstance(element, Integral) for element in value)
        metric = _find_vector(key, f"std::vector<{INTEGER_TYPE if whole else 'double'}>", len(value))
        core.add_vector(metric.id, [int(element) if whole else float(element) for element in value])
    else:
        raise InvalidMetric(
            f"metric {key!r} has the value {value!r} of type {type(value).__name__}",
            hint="Values are numbers, lists of numbers, and tensors of no or one dimension",
        )


def _record_on_device(key: str, value: Any) -> None:
    try:
        record_metrics({key: value})
    except UsageError as error:
        raise InvalidMetric(error.message, hint=error.hint) from error


def _is_vector(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return False
    return len(value) > 0 and all(isinstance(element, Real) for element in value)


def _find(key: str, type_name: str) -> _Known:
    """A metric by name and type; only the values of one scope must be of one type, those of properties need not be.

    Raises:
        InvalidMetric: The scope that had the first value of the metric has one of another type now.
    """
    known = _known.get((key, "")) or _learn(key, "", type_name)
    if known.type_name == type_name:
        return known
    if not key.endswith("(pty)") and known.path == open_scopes.path():
        raise InvalidMetric(
            f"Metric value type mismatch for valueId {known.number} ({key}): current={known.type_name}, new={type_name}"
        )
    return _known.get((key, type_name)) or _learn(key, type_name, type_name)


def _find_vector(key: str, type_name: str, length: int) -> _Known:
    """A metric of vectors, which have one length in each scope.

    Raises:
        InvalidMetric: The scope has one of another length, or type.
    """
    known = _find(key, type_name)
    before = _lengths.setdefault((key, open_scopes.path()), length)
    if before != length and not key.endswith("(pty)"):
        raise InvalidMetric(
            f"Vector metric size mismatch for valueId {known.number} ({key}): current={before}, new={length}"
        )
    return known


def _learn(key: str, group: str, type_name: str) -> _Known:
    with _lock:
        new = _Known(len(_known), type_name, _make(key, type_name), open_scopes.path())
        return _known.setdefault((key, group), new)


def _make(key: str, type_name: str) -> int:
    """A metric of the core for values of one type."""
    label = _label_of(key)
    if type_name == _TEXT:
        label = label._replace(unit=TEXT_UNIT, kind="property")
    return declare_beside(label, ("double" in type_name,))[0]


def _label_of(key: str) -> MetricLabel:
    """Name, unit and kind; what has more in parentheses than that is all name, which Proton does not mind."""
    with suppress(UsageError):
        return parse_label(key)
    kind = next((kind for ending, kind in _ENDINGS.items() if key.endswith(ending)), "inclusive")
    name = key.replace("(exc)", "").replace("(pty)", "").strip()
    if not name:
        raise InvalidMetric(f"a metric needs a name, not {key!r}", hint="For example: flops, or latency (us)(exc)")
    return MetricLabel(name, "", kind)


def _text_number(text: str) -> int:
    with _lock:
        if text not in _texts:
            _texts.append(text)
        return _texts.index(text)
