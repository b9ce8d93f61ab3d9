"""Copies from ordinary (pageable) memory of the host: the call lasts as long as the copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding, three_digits
from bragg.analyze.causes.jitted_calls import waits_for_calls
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.staged import jitted_with_copies, staged_copies
from bragg.analyze.causes.thresholds import STAGED_COPY, WAITS
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, Quantity
from bragg.model.table import BoolArray

# From 5 to 10 GB/s to 20 to 50 GB/s, and the copy runs beside kernels.
_SAVED = 0.8
_ALONE = 0.9
# What the host takes to put an array into pinned memory: 7 to 14 times as long as the copy from there (four programs on
# an H100 and an H200), and the call for it. What the GPU waits beyond that, it waits for other code.
_STAGING, _CALL_NS = 15, 100_000


def _find(evidence: Evidence) -> Iterator[Finding]:
    jitted, copies = jitted_with_copies(evidence)
    yield from _of_numpy(evidence, jitted, copies)
    count, staged_ns = (np.where(copies, 0.0, each) for each in staged_copies(evidence))
    n, total_ns = float(count.sum()), float(staged_ns.sum())
    if not n:
        return
    alone_share = min(float(alone_ns(evidence, staged_ns > 0).sum()) / total_ns, 1.0)
    wall_ns = total_ns * alone_share * _SAVED / evidence.bounding.count
    cause = Cause(
        "pageable-copies",
        f"copies from memory that is not pinned, {counted(evidence, n)}, "
        f"{total_ns / n / 1e6:.2f} ms each: the host and the GPU wait for them",
        "pin_memory=True for the DataLoader, or tensor.pin_memory(), and .to(device, non_blocking=True)",
        evidence=(
            Quantity(f"copies {evidence.step_word}", evidence.per_step(n)),
            Quantity(f"time {evidence.step_word}", evidence.per_step(total_ns), "ns"),
        ),
        gain=evidence.gain(wall_ns, _limit(alone_share)) if evidence.wall_ns else None,
        confidence=Confidence.LIKELY,
    )
    yield host_finding(evidence, staged_ns > 0, staged_ns, cause)


def _of_numpy(evidence: Evidence, jitted: BoolArray, copies: BoolArray) -> Iterator[Finding]:
    """Arrays of NumPy that JAX's functions are given: JAX copies them into pinned memory, and from there to the GPU.

    It does so within the call, or before it: the GPU waits for the code of the call.
    """
    if evidence.idle_ns is None or not copies.any():
        return
    waits_ns = waits_for_calls(evidence, jitted)
    host_ns, gpu_ns = float(waits_ns.sum()), float(evidence.gpu_ns[copies].sum())
    if not host_ns + gpu_ns:
        return
    n = float(evidence.gpu_count[copies].sum())
    host_ns = min(host_ns, _STAGING * gpu_ns + n * _CALL_NS)
    cause = Cause(
        "pageable-copies",
        f"jitted functions are given arrays of NumPy, {counted(evidence, n)}: the "
        f"GPU waits {three_digits(host_ns / n / 1e6)} ms for the host, then {three_digits(gpu_ns / n / 1e6)} ms for "
        "the copy",
        "jax.device_put, once before the steps, or for the next batch while this one is computed",
        evidence=(
            Quantity(f"copies {evidence.step_word}", evidence.per_step(n)),
            Quantity(f"time of the host {evidence.step_word}", evidence.per_step(host_ns), "ns"),
            Quantity(f"time of the copies {evidence.step_word}", evidence.per_step(gpu_ns), "ns"),
        ),
        gain=evidence.gain((host_ns + gpu_ns) * _ALONE),
        confidence=Confidence.LIKELY,
    )
    copied_ns = np.bincount(evidence.profile.tree.parent[copies], evidence.gpu_ns[copies], len(jitted))
    yield host_finding(evidence, jitted, waits_ns + copied_ns, cause)


def _limit(alone_share: float) -> str:
    """While kernels run, nothing waits for a copy: the host only launches later what has to queue up all the same."""
    return "the GPU" if alone_share < _ALONE else ""


RULE = Rule(
    _find,
    "copies to the GPU from memory that is not pinned",
    (GPU_TIME, HOST_TIME),
    (STAGED_COPY, WAITS),
    "pinned memory and non_blocking=True",
)
