"""What clocks inside of kernels said, as nodes below the launches that had them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bragg.formats.captured.growth import Growth, padded
from bragg.formats.limits import Limits
from bragg.model import Combine, FrameKind, Metric, MetricKind, Profile
from bragg.model.kernels.inside import WITH_CLOCKS, InsideKernel, KernelEvent, Latency, Line, ScopeValues

CYCLES, WAITING = "warp_cycles", "warp_wait_cycles"
_VALUE, _EVENT = "scope_value", "kernel_event"
_OTHER = "<between what has clocks>"
_READING = "<reading the clocks>"


def with_clocks(profile: Profile, limits: Limits) -> Profile:
    """The profile with a node for each stretch that was timed, below its lines and its kernel's launches with clocks.

    A launch's cycles stand under the call path with most of these launches: it was one of them.

    Raises:
        TooLargeError: There are too many stretches for the file's size.
    """
    growth = Growth(len(profile.tree), len(profile.tree.frames))
    found: list[tuple[int, int, bool]] = []
    given: list[tuple[int, ScopeValues]] = []
    events: list[tuple[int, Latency]] = []
    for kernel in profile.run.inside_kernels:
        if (node := _launches(profile, kernel)) is not None:
            found += _grow(growth, node, kernel)
            given += [(growth.child(_at(growth, node, each.lines), each.scope), each) for each in kernel.values]
            events += [row for event in kernel.events for row in _grow_event(growth, node, event)]
    if not found:
        return profile
    limits.check_metrics(2 + (4 if given else 0) + (3 if events else 0), growth.n_nodes)
    tree = growth.applied_to(profile.tree)
    metrics = {name: padded(metric, len(tree)) for name, metric in profile.metrics.items()}
    nodes = np.array([node for node, _, _ in found], np.int64)
    for name, cycles in (
        (CYCLES, [cycles for _, cycles, _ in found]),
        (WAITING, [cycles if is_wait else 0 for _, cycles, is_wait in found]),
    ):
        own = np.zeros(len(tree), np.int64)
        np.add.at(own, nodes, cycles)
        metrics[name] = Metric(name, "cycles", MetricKind.INCLUSIVE, own)
    if given:
        metrics |= {metric.name: metric for metric in _value_metrics(len(tree), given)}
    if events:
        metrics |= {metric.name: metric for metric in _event_metrics(len(tree), events)}
    return replace(profile, tree=tree, metrics=metrics)


def _value_metrics(n_nodes: int, given: Sequence[tuple[int, ScopeValues]]) -> Iterator[Metric]:
    """Count, sum, least and greatest of the values of scopes."""
    nodes = np.array([node for node, _ in given], np.int64)
    for name, values in (
        ("count", np.array([each.count for _, each in given], np.int64)),
        ("sum", np.array([each.total for _, each in given], np.float64)),
    ):
        own = np.zeros(n_nodes, values.dtype)
        np.add.at(own, nodes, values)
        yield Metric(f"{_VALUE}_{name}", "1" if name == "count" else "", MetricKind.EXCLUSIVE, own)
    for combine in (Combine.MIN, Combine.MAX):
        own = np.full(n_nodes, np.nan)
        finite = [(node, each.least if combine is Combine.MIN else each.greatest) for node, each in given if each.count]
        for node, value in finite:
            own[node] = combine.ufunc(own[node], value)
        yield Metric(f"{_VALUE}_{combine.value}", "", MetricKind.PROPERTY, own, combine)


def _grow_event(growth: Growth, launch: int, event: KernelEvent) -> list[tuple[int, Latency]]:
    """A node where the event begins, and one below it for each value, whose latencies add up to its own."""
    node = growth.child(_at(growth, launch, event.lines), event.name)
    if not event.by_value:
        return [(node, event.latency)]
    return [(growth.child(node, f"{event.name} = {value:.9g}"), latency) for value, latency in event.by_value]


def _event_metrics(n_nodes: int, events: Sequence[tuple[int, Latency]]) -> Iterator[Metric]:
    """Count and cycles of events, and the longest one."""
    nodes = np.array([node for node, _ in events], np.int64)
    for name, unit, values in (
        ("count", "1", [each.count for _, each in events]),
        ("cycles", "cycles", [each.total for _, each in events]),
    ):
        own = np.zeros(n_nodes, np.int64)
        np.add.at(own, nodes, values)
        yield Metric(f"{_EVENT}_{name}", unit, MetricKind.INCLUSIVE, own)
    longest = np.full(n_nodes, np.nan)
    np.fmax.at(longest, nodes, [float(each.longest) for _, each in events])
    yield Metric(f"{_EVENT}_max", "cycles", MetricKind.PROPERTY, longest, Combine.MAX)


def _launches(profile: Profile, kernel: InsideKernel) -> int | None:
    """The node of most launches with clocks; None: there are none."""
    frames = profile.tree.frames
    named = [row for row, name in enumerate(frames.name) if name == kernel.kernel + WITH_CLOCKS]
    nodes = np.flatnonzero(np.isin(profile.tree.frame, named) & (profile.tree.kind == FrameKind.KERNEL))
    if not (kernel.stretches or kernel.values or kernel.events) or not len(nodes):
        return None
    launches = profile.metrics.get("gpu_count")
    return int(nodes[0] if launches is None else nodes[launches.own[nodes].argmax()])


def _grow(growth: Growth, launch: int, kernel: InsideKernel) -> list[tuple[int, int, bool]]:
    """Node, cycles and whether it is a wait, for each stretch."""
    rows = []
    for stretch in kernel.stretches:
        node = _at(growth, launch, stretch.lines)
        rows.append((growth.child(node, stretch.does), stretch.total, stretch.is_wait))
    if kernel.clock_cycles:
        rows.append((growth.child(launch, _READING), kernel.clock_cycles, False))
    return [*rows, (growth.child(launch, _OTHER), kernel.other_cycles, False)]


def _at(growth: Growth, node: int, lines: Sequence[Line]) -> int:
    """The node of a line, below those that it was inlined at."""
    for line in reversed(lines):
        node = growth.child(node, line.function, line.file, line.line)
    return node
