"""Many small collectives in each step, each of which costs its latency."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.alone import alone_ns
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding, three_digits
from bragg.analyze.causes.needs import GPU_COUNT, IDLE, Need
from bragg.analyze.causes.paths import below
from bragg.analyze.causes.thresholds import OFTEN, SMALL_COLLECTIVE
from bragg.analyze.engine import HostTime, Rule
from bragg.analyze.ranks.collectives import KernelCalls, host_of_collectives, kernel_calls
from bragg.model import Confidence, Finding, Gain, Quantity
from bragg.model.table import BoolArray, FloatArray, Int64Array

# What is left is the latency of a few buckets.
_SAVED = 0.9
# Of a collective between GPUs of one host; what takes longer waits for other ranks, and would after the change too.
_LATENCY_NS = 30_000


def _calls(evidence: Evidence) -> KernelCalls:
    return kernel_calls(evidence.profile, np.zeros(len(evidence.profile.tree), np.int64))


def _sizes(found: KernelCalls) -> Int64Array:
    """Bytes of each node's collective, [n_nodes]; -1: it is none, or they are not known."""
    sizes = np.append(found.calls.size_bytes, -1)
    return sizes[found.call]


def _are_known(evidence: Evidence) -> bool:
    found = _calls(evidence)
    return not found.is_communication.any() or bool((_sizes(found) >= 0).any())


SIZES = Need("sizes of collectives", "", _are_known)


def _find(evidence: Evidence) -> Iterator[Finding]:
    tree, found = evidence.profile.tree, _calls(evidence)
    sizes = _sizes(found)
    small = (sizes >= 0) & (sizes < SMALL_COLLECTIVE.value) & (evidence.gpu_count > 0)
    count = float(evidence.gpu_count[small].sum())
    if not small.any() or count < OFTEN.value * evidence.steps:
        return
    total_bytes = float((evidence.gpu_count * sizes)[small].sum())
    host = below(evidence.profile, host_of_collectives(tree) & (tree.sum_up(small.astype(np.int64)) > 0))
    cause = Cause(
        "small-collectives",
        f"{counted(evidence, count, 'collective')} of "
        f"{three_digits(total_bytes / count / 1024)} kB each: their latency costs more than their bytes",
        "gather tensors into one buffer and send it once: larger buckets (bucket_cap_mb), "
        "torch.distributed._coalescing_manager, or one flat tensor",
        gain=_gain(evidence, small, host),
        confidence=Confidence.LIKELY,
        evidence=(
            Quantity(f"collectives {evidence.step_word}", evidence.per_step(count)),
            Quantity("mean size", total_bytes / count, "B"),
            Quantity("GPU time of a collective", float(evidence.gpu_ns[small].sum()) / count, "ns"),
        ),
    )
    yield host_finding(evidence, small, evidence.gpu_count, cause)


def _gain(evidence: Evidence, small: BoolArray, host: BoolArray) -> Gain | None:
    """What nothing else ran beside, up to the latency of each, and what the host launches them in."""
    if not evidence.wall_ns:
        return None
    latency_ns: FloatArray = np.minimum(alone_ns(evidence, small), evidence.gpu_count * _LATENCY_NS)
    of_host = evidence.host_gain(host, _SAVED)
    own_ns = float(latency_ns[small].sum()) / evidence.bounding.count * _SAVED
    return evidence.gain(own_ns + (of_host.wall_ns if of_host else 0.0))


RULE = Rule(
    _find,
    "many small collectives in each step",
    (IDLE, GPU_COUNT, SIZES),
    (OFTEN, SMALL_COLLECTIVE),
    "gather tensors into one buffer, and send it once",
    host_time=HostTime.CAUSE,
)
