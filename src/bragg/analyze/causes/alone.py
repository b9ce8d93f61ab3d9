"""Work of GPUs beside which nothing else runs."""

from __future__ import annotations

import numpy as np

from bragg.analyze.busy import busy_curve
from bragg.analyze.causes.evidence import Evidence
from bragg.model.table import BoolArray, FloatArray, Int64Array


def alone_ns(evidence: Evidence, chosen: BoolArray) -> FloatArray:
    """How long the work of some nodes runs while none of the others does, on GPUs that bound the program: ns [n_nodes].

    Without a timeline it is what it is at least: all that GPUs did side by side is taken to have been beside it.
    """
    return _of_timeline(evidence, chosen) if evidence.has_timeline else _of_sums(evidence, chosen)


def _of_timeline(evidence: Evidence, chosen: BoolArray) -> FloatArray:
    is_bounding = evidence.bounding.are_among(evidence.profile.tracks.device)
    on_gpu = evidence.slices.take(evidence.on_gpu & is_bounding[evidence.slices.track])
    own, others = on_gpu.take(chosen[on_gpu.node]), on_gpu.take(~chosen[on_gpu.node])
    alone = own.duration_ns - _overlap(own.start_ns, own.duration_ns, others.start_ns, others.duration_ns)
    by_node: FloatArray = np.bincount(own.node, alone, len(chosen)).astype(np.float64)
    return by_node


def _of_sums(evidence: Evidence, chosen: BoolArray) -> FloatArray:
    gpus, told = evidence.bounding, evidence.profile.run.gpu_busy_ns
    busy_ns = float(sum(busy for device, busy in told.items() if gpus.ordinals is None or device in gpus.ordinals))
    own_ns = np.nan_to_num(evidence.profile.own("gpu_time").astype(np.float64))
    own_ns = np.where(gpus.has(evidence.profile.tree), own_ns, 0.0)
    chosen_ns = float(own_ns[chosen].sum())
    if not chosen_ns or not busy_ns:
        return np.zeros(len(chosen))
    together_ns = max(float(own_ns.sum()) - busy_ns, 0.0)
    return np.where(chosen, evidence.bounding_ns, 0.0) * max(1 - together_ns / chosen_ns, 0.0)


def _overlap(
    start_ns: Int64Array, lasts_ns: Int64Array, other_ns: Int64Array, others_last_ns: Int64Array
) -> FloatArray:
    """How long anything else ran during each interval."""
    if not len(other_ns):
        return np.zeros(len(start_ns))
    order = np.argsort(other_ns, kind="stable")
    times, values = busy_curve(other_ns[order], others_last_ns[order])
    found: FloatArray = np.interp(start_ns + lasts_ns, times, values) - np.interp(start_ns, times, values)
    return found
