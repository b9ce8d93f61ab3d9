"""Reading pprof, the gzip-compressed protocol buffer `perftools.profiles.Profile` of Go, JAX, gperftools and others.

Samples are stacks of locations, innermost first, with one value of each sample type; a location has a line for each
function that was inlined there, innermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bragg.formats.encodings.protobuf import fields, signed, varints
from bragg.formats.files import read_content
from bragg.formats.format import Format, damaged, unknown_format
from bragg.formats.limits import Limits
from bragg.formats.timelines.call_tree import Frames, Nodes
from bragg.model import FrameKind, Metric, MetricKind, Profile

_TIME_UNITS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_UNITS = {"bytes": "B", "count": "1"}
# By what is counted and in which unit, as bragg calls it.
_NAMES = {("cpu", "ns"): "host_time", ("wall", "ns"): "host_time", ("samples", "1"): "samples"}
# Call paths of 60 bytes a field compress so well that they may be this much longer.
_BYTES_OF_PATHS = 32
_LENGTH_FIELDS = (1, 2, 3, 4, 5, 6, 11)
_NUMBER_FIELDS = (7, 8, 9, 10, 12, 13, 14)


@dataclass
class _Message:
    """The fields of a profile that are read, by their names in profile.proto."""

    sample_type: list[bytes] = field(default_factory=list)
    sample: list[bytes] = field(default_factory=list)
    location: list[bytes] = field(default_factory=list)
    function: list[bytes] = field(default_factory=list)
    string_table: list[str] = field(default_factory=list)
    time_nanos: int = 0
    duration_nanos: int = 0


@dataclass(frozen=True)
class LabelledSample:
    """One sample with what else its writer says of it.

    Attributes:
        stack: Kind, name, file and line of each function, the outermost first.
        values: By what is counted.
        labels: Texts by their keys.
    """

    stack: tuple[tuple[FrameKind, str, str, int], ...]
    values: dict[str, int]
    labels: dict[str, str]


def labelled_samples(content: bytes, limits: Limits) -> list[LabelledSample]:
    """The samples of a profile that is not compressed.

    Raises:
        ValueError: It is damaged or too large.
    """
    message, frames = _message(content, limits), Frames()
    stacks, names = _Stacks(message, frames), [_sample_type(message, each)[0] for each in message.sample_type]
    rows: list[list[int]] = []
    n_frames = 0
    for sample in message.sample:
        n_frames += len(sample)
        limits.check_rows(n_frames // _BYTES_OF_PATHS)
        rows.append([frame for location in reversed(_repeated(sample, 1)) for frame in stacks.frames_of(location)])
    table = frames.table()
    described = list(zip(map(FrameKind, table.kind.tolist()), table.name, table.file, table.line.tolist(), strict=True))
    return [
        LabelledSample(
            tuple(described[row] for row in stack),
            dict(zip(names, map(signed, _repeated(sample, 2)), strict=True)),
            dict(_labels(message, sample)),
        )
        for stack, sample in zip(rows, message.sample, strict=True)
    ]


def _labels(message: _Message, sample: bytes) -> Iterator[tuple[str, str]]:
    for number, value in fields(sample):
        if number == 3 and isinstance(value, bytes):
            key, text = _numbers(value, 1, 2)
            yield _text(message, key), _text(message, text)


def is_pprof(start: bytes) -> bool:
    """Whether uncompressed content may be pprof: its first fields have the numbers and types of a profile's."""
    try:
        known = [
            number in (_LENGTH_FIELDS if isinstance(value, bytes) else _NUMBER_FIELDS)
            for number, value in fields(start, may_break_off=True)
        ]
    except ValueError:
        return False
    return len(known) > 1 and all(known)


def read(path: Path, *, trace: bool = True) -> Profile:
    """Read a pprof file, compressed with gzip or not.

    Raises:
        BadFile: The file is damaged or too large.
    """
    content, limits = read_content(path), Limits.of(path)
    try:
        message = _message(content, limits)
        if not message.sample_type or message.string_table[:1] != [""]:
            raise unknown_format(path)
        profile = _profile(message, limits)
        profile.check()
    except (ValueError, OverflowError) as error:
        raise damaged(path, error, "Write or copy it again") from error
    return profile


def _message(content: bytes, limits: Limits) -> _Message:
    message = _Message()
    lists = {1: message.sample_type, 2: message.sample, 4: message.location, 5: message.function}
    for n_fields, (number, value) in enumerate(fields(content)):
        limits.check_rows(n_fields)
        if isinstance(value, bytes):
            if number == 6:
                message.string_table.append(value.decode(errors="replace"))
            elif number in lists:
                lists[number].append(value)
        elif number == 9:
            message.time_nanos = signed(value)
        elif number == 10:
            message.duration_nanos = signed(value)
    return message


def _profile(message: _Message, limits: Limits) -> Profile:
    frames, nodes = Frames(), Nodes()
    stacks = _Stacks(message, frames)
    types = [_sample_type(message, content) for content in message.sample_type]
    rows: list[tuple[int, list[int]]] = []
    n_frames = 0
    for content in message.sample:
        # A location takes a byte, and an honest stack repeats most of those of another.
        n_frames += len(content)
        limits.check_rows(n_frames // _BYTES_OF_PATHS)
        locations, values = _repeated(content, 1), [signed(value) for value in _repeated(content, 2)]
        if len(values) != len(types):
            raise ValueError(f"a sample has {len(values)} values of {len(types)} types")
        node = 0
        for location in reversed(locations):
            for frame in stacks.frames_of(location):
                node = nodes.child(node, frame)
        rows.append((node, values))
    tree = nodes.tree(frames.table())
    limits.check_metrics(len(types), len(tree))
    metrics = [_metric(kind, index, rows, len(tree)) for index, kind in enumerate(types)]
    return Profile(_meta(message), tree, {metric.name: metric for metric in metrics})


def _metric(kind: tuple[str, str, int], index: int, rows: Sequence[tuple[int, list[int]]], n_nodes: int) -> Metric:
    name, unit, scale = kind
    own = np.zeros(n_nodes, np.int64)
    values = [values[index] * scale for _, values in rows]
    np.add.at(own, np.array([node for node, _ in rows], np.int64), np.array(values, np.int64))
    return Metric(name, unit, MetricKind.INCLUSIVE, own)


def _sample_type(message: _Message, content: bytes) -> tuple[str, str, int]:
    """Name of the metric, its unit, and what its values are multiplied with."""
    kind, unit = (_text(message, number) for number in _numbers(content, 1, 2))
    unit, scale = ("ns", _TIME_UNITS[unit]) if unit in _TIME_UNITS else (_UNITS.get(unit, unit), 1)
    return _NAMES.get((kind, unit), kind or "value"), unit, scale


class _Stacks:
    """Frames of locations, made at first use."""

    def __init__(self, message: _Message, frames: Frames) -> None:
        self._message = message
        self._frames = frames
        self._locations = {_numbers(content, 1)[0]: content for content in message.location}
        self._functions = {_numbers(content, 1)[0]: content for content in message.function}
        self._found: dict[int, list[int]] = {}

    def frames_of(self, location: int) -> list[int]:
        """The frames of a location, the outermost first.

        Raises:
            ValueError: There is no such location.
        """
        if location not in self._found:
            if location not in self._locations:
                raise ValueError(f"there is no location {location}")
            content = self._locations[location]
            lines = [value for number, value in fields(content) if number == 4 and isinstance(value, bytes)]
            found = [self._frame(*_numbers(line, 1, 2)) for line in reversed(lines)]
            address = _numbers(content, 3)[0]
            self._found[location] = found or [self._frames.id(FrameKind.NATIVE, f"{address:#x}")]
        return self._found[location]

    def _frame(self, function: int, line: int) -> int:
        if function not in self._functions:
            raise ValueError(f"there is no function {function}")
        numbers = _numbers(self._functions[function], 2, 3, 4)
        name, system_name, file = (_text(self._message, number) for number in numbers)
        kind = FrameKind.PYTHON if file.endswith(".py") else FrameKind.NATIVE
        return self._frames.id(kind, name or system_name or "?", file, line if line < 1 << 31 else 0)


def _meta(message: _Message) -> dict[str, Any]:
    meta: dict[str, Any] = {"recorder": "pprof", "data": "tree"}
    start_ns, duration_ns = message.time_nanos, message.duration_nanos
    if start_ns > 0 and duration_ns > 0:
        meta |= {"started_ns": start_ns, "stopped_ns": start_ns + duration_ns}
    return meta


def _text(message: _Message, number: int) -> str:
    if number >= len(message.string_table):
        raise ValueError(f"there is no string {number}")
    return message.string_table[number]


def _numbers(content: bytes, *wanted: int) -> tuple[int, ...]:
    """Number fields of a message, 0 where it has none."""
    found = {number: value for number, value in fields(content) if isinstance(value, int)}
    return tuple(found.get(number, 0) for number in wanted)


def _repeated(content: bytes, wanted: int) -> list[int]:
    """A repeated number field, packed or not."""
    found: list[int] = []
    for number, value in fields(content):
        if number == wanted:
            found += [value] if isinstance(value, int) else varints(value)
    return found


FORMAT = Format(".pprof", "pprof of Go, JAX, gperftools and others", sniff=is_pprof, read=read)
