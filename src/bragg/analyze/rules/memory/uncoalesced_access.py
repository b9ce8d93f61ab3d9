"""Tiles no dimension of which lies in memory element by element."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bragg.analyze.causes.kernel_finding import names_text
from bragg.analyze.causes.least_time import moving_ns
from bragg.analyze.causes.thresholds import MANY_LANES, WASTED_TRAFFIC
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Access

_SECTOR_BYTES = 32
_NUMBER = re.compile(r"-?\d+")
# Caches return a part of what is fetched too much.
_MOST = 0.75
_CHANGE = (
    "let neighbouring threads access neighbouring elements: tile along the contiguous dimension, "
    "or transpose the tile in the kernel or the tensor before it"
)


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    accesses = [each for each in compiled.accesses or () if each.in_loop] or list(compiled.accesses or ())
    strided = [
        each for each in accesses if (each.is_strided or _is_of_short_runs(each)) and each.elements >= MANY_LANES.value
    ]
    asked = sum(each.size_bytes for each in accesses)
    moved = sum(each.elements * _bytes_of_element(each, strided) for each in accesses)
    if not strided or not moved or 1 - asked / moved < WASTED_TRAFFIC.value:
        return None
    worst = max(strided, key=lambda each: each.elements * _bytes_of_element(each, strided))
    verb = "stores" if worst.is_store else "loads"
    what = (
        f"{verb} elements that lie {names_text(worst.spread)} elements apart"
        if worst.is_strided
        else f"{verb} {worst.run} elements next to each other, then others far from them"
    )
    return Defect(
        f"{what}: {_bytes_of_element(worst, strided):.3g} B move for each {worst.element_bytes} B",
        _CHANGE,
        _saved(kernel, compiled, 1 - asked / moved),
        Confidence.HEURISTIC if any(each.jumps for each in strided) else Confidence.LIKELY,
        [each.place for each in (worst, *strided)],
        (
            Quantity("memory traffic that was asked for", asked / moved, "share"),
            Quantity("accesses without a contiguous dimension", len(strided)),
        ),
    )


def _saved(kernel: HotKernel, compiled: CompiledKernel, wasted: float) -> float:
    """By the bytes that it asks for, where nothing else can be what it takes its time for; else by those it wastes."""
    least_ns = moving_ns(kernel, compiled)
    adds = any(each.in_loop or each.elements >= MANY_LANES.value for each in compiled.atomics or ())
    does_more = compiled.dots or compiled.slow or adds
    if least_ns is None or does_more or any(launch.blocks < kernel.num_sms for launch in kernel.launches):
        return min(wasted, _MOST)
    return max(1 - least_ns / kernel.mean_ns, 0.0)


def _is_of_short_runs(access: Access) -> bool:
    return 1 < access.run < access.elements and access.run * access.element_bytes < _SECTOR_BYTES


def _bytes_of_element(access: Access, strided: Sequence[Access]) -> float:
    """What moves for one element; accesses side by side, as of real and imaginary parts, share it."""
    if access not in strided:
        return access.element_bytes
    if not access.is_strided:
        # The rest of a sector is of a block beside it, which runs at the same time: half of it comes from L2.
        return (_SECTOR_BYTES / access.run + access.element_bytes) / 2
    nearest = min((abs(int(stride)) for stride in access.spread if _NUMBER.fullmatch(stride)), default=_SECTOR_BYTES)
    beside = sum(each.strides == access.strides and each.is_store == access.is_store for each in strided)
    moved = nearest * access.element_bytes
    return max(moved / beside, access.element_bytes) if moved < _SECTOR_BYTES else _SECTOR_BYTES


RULE = kernel_rule(
    "uncoalesced-access",
    _judge,
    "loads and stores of Triton kernels whose neighbouring elements are far apart in memory",
    _CHANGE,
    WASTED_TRAFFIC,
    MANY_LANES,
)
