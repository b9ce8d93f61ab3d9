"""What clocks inside of kernels said, as nodes below the launches that had them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bragg.formats.captured.growth import Growth, padded
from bragg.formats.limits import Limits
from bragg.model import Combine, FrameKind, Metric, MetricKind, Profile
from bragg.model.kernels.inside import WITH_CLOCKS, InsideKernel, Line, ScopeValues

__all__ = ["CYCLES", "WAITING", "with_clocks"]

CYCLES, WAITING = "warp_cycles", "warp_wait_cycles"
_VALUE = "scope_value"
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
    for kernel in profile.run.inside_kernels:
        if (node := _launches(profile, kernel)) is not None:
            found += _grow(growth, node, kernel)
            given += [(growth.child(_at(growth, node, each.lines), each.scope), each) for each in kernel.values]
    if not found:
        return profile
    limits.check_metrics(6 if given else 2, growth.n_nodes)
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


def _launches(profile: Profile, kernel: InsideKernel) -> int | None:
    """The node of most launches with clocks; None: there are none."""
    frames = profile.tree.frames
    named = [row for row, name in enumerate(frames.name) if name == kernel.kernel + WITH_CLOCKS]
    nodes = np.flatnonzero(np.isin(profile.tree.frame, named) & (profile.tree.kind == FrameKind.KERNEL))
    if not (kernel.stretches or kernel.values) or not len(nodes):
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
