"""Why a rank is late: what it did more of than its peers while they waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from bragg.analyze.ranks.imbalance import PathValues
from bragg.analyze.ranks.step_work import StepWork
from bragg.analyze.ranks.stragglers import Straggler, When
from bragg.model.ranks.summary import RankSummary
from bragg.model.table import FloatArray, Int64Array

# Of what a rank costs, so much must be seen in one place.
_EXPLAINS, _EXPLAINS_SUMS = 0.5, 0.2
_MORE_LAUNCHES = 0.01
_ONE_KERNEL = 0.7


class Reason(Enum):
    """Why a rank is late."""

    SLOW_GPU = "slow GPU"
    SLOW_KERNEL = "slow kernel"
    SLOW_CPU = "slow CPU"
    MORE_WORK = "more work"
    INPUT = "input"
    COPIES = "copies"
    HOST = "host"
    BETWEEN_OPERATORS = "between operators"
    LATE_START = "late start"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LateCause:
    """Why a rank is late.

    Attributes:
        reason: In one word.
        each_ns: How much more of it a late step has than those of its peers.
        ratio: By how much its kernels take longer, or how much more of them it runs; 1: not the cause.
        path: Call path that it shows most at; empty: none.
    """

    reason: Reason
    each_ns: float
    ratio: float = 1.0
    path: str = ""


def cause_of(
    late: Straggler, work: StepWork, ranks: Sequence[RankSummary], values: PathValues, stragglers: Sequence[int]
) -> LateCause:
    """The cause of one rank's lateness, as far as profiles tell.

    Args:
        late: The rank.
        work: What the rank and some of its peers did in each step.
        ranks: The ranks.
        values: Their times by call path.
        stragglers: Indices of all late ranks, which are no peers.
    """
    if late.when is When.START:
        return LateCause(Reason.LATE_START, late.cost_ns)
    peers = peers_of(late.index, ranks, stragglers)
    more = {name: _more(name, work, late, peers) for name in work.done}
    # Sums count waiting beside other work as well.
    least_ns = (_EXPLAINS_SUMS if late.when is When.WHOLE else _EXPLAINS) * late.each_ns
    if more["data_ns"] >= least_ns:
        return LateCause(Reason.INPUT, more["data_ns"], path=_path(values.host_ns, values, late.index, peers))
    if ranks[late.index].is_on_cpus:
        return _on_cpus(late, work, values, peers, is_compute=more["compute_ns"] >= least_ns)
    if more["compute_ns"] >= least_ns:
        return _of_kernels(late, work, values, peers, more["compute_ns"])
    if more["copy_ns"] >= least_ns:
        return LateCause(Reason.COPIES, more["copy_ns"], path=_path(values.gpu_ns, values, late.index, peers))
    if not np.nansum(work.done["launches"]) and not values.host_ns.any():  # Collectives alone were recorded.
        return LateCause(Reason.UNKNOWN, late.each_ns)
    # Its GPU did what the others' did, later.
    return LateCause(Reason.HOST, late.each_ns, path=_path(values.host_ns, values, late.index, peers))


def peers_of(index: int, ranks: Sequence[RankSummary], stragglers: Sequence[int]) -> Int64Array:
    """Rows of the ranks of equal role that are not late themselves, [chosen]; if there is none, of other ranks."""
    others = [row for row in range(len(ranks)) if row != index]
    healthy = [row for row in others if row not in stragglers] or others
    equal = [row for row in healthy if ranks[row].role == ranks[index].role]
    return np.array(equal or healthy, np.int64)


def _more(name: str, work: StepWork, late: Straggler, peers: Int64Array) -> float:
    """What a rank had more of than the median of its peers, in the median late step."""
    own, others = work.of(name, [late.index], late.steps)[0], work.of(name, peers, late.steps)
    if np.isnan(own).all() or np.isnan(others).all():
        return 0.0
    # Ranks that do less work for a while have more of it in other steps: what is usual for them is taken off.
    return float(np.nanmedian(own - np.nanmedian(others, axis=0)))


def _on_cpus(late: Straggler, work: StepWork, values: PathValues, peers: Int64Array, *, is_compute: bool) -> LateCause:
    path = _path(values.host_ns, values, late.index, peers)
    if not is_compute:
        return LateCause(Reason.BETWEEN_OPERATORS, late.each_ns, path=path)
    more_ns, ratio = _more("compute_ns", work, late, peers), _ratio("launches", work, late, peers)
    if ratio > 1 + _MORE_LAUNCHES:
        return LateCause(Reason.MORE_WORK, more_ns, ratio, path)
    return LateCause(Reason.SLOW_CPU, more_ns, _ratio("compute_ns", work, late, peers), path)


def _ratio(name: str, work: StepWork, late: Straggler, peers: Int64Array) -> float:
    own, others = (work.of(name, each, late.steps) for each in ([late.index], peers))
    return float(np.nanmedian(own) / max(np.nanmedian(others), 1.0))


def _of_kernels(late: Straggler, work: StepWork, values: PathValues, peers: Int64Array, more_ns: float) -> LateCause:
    usual = float(np.nanmedian(work.of("launches", peers, late.steps)))
    more_launches = _more("launches", work, late, peers)
    path = _path(values.gpu_ns, values, late.index, peers)
    if usual > 0 and more_launches > max(_MORE_LAUNCHES * usual, 0.5):
        return LateCause(Reason.MORE_WORK, more_ns, 1 + more_launches / usual, path)
    own = _by_kernel(values, values.of(values.gpu_ns, late.index))
    others = _by_kernel(values, values.median(values.gpu_ns, peers))
    gained = np.maximum(own - others, 0.0)
    row = int(np.argmax(gained))
    # One kernel among many: a slow GPU would slow the others as well.
    if gained[row] > _ONE_KERNEL * gained.sum() and others[row] < _ONE_KERNEL * others.sum():
        return LateCause(Reason.SLOW_KERNEL, more_ns, float(own[row] / max(others[row], 1.0)), path)
    return LateCause(Reason.SLOW_GPU, more_ns, _ratio("compute_ns", work, late, peers), path)


def _by_kernel(values: PathValues, by_path: FloatArray) -> FloatArray:
    """Times of kernels on whatever path, without collectives."""
    own = np.where(values.is_communication | (values.gpu_count.max(axis=0, initial=0) == 0), 0.0, by_path)
    sums: FloatArray = np.bincount(values.kernel, own).astype(np.float64)
    return sums


def _path(table: FloatArray, values: PathValues, index: int, peers: Int64Array) -> str:
    """The call path with most time above that of the peers; empty: none has more."""
    more = np.where(values.is_communication, 0.0, values.of(table, index) - values.median(table, peers))
    return values.label(int(np.argmax(more)), index) if len(more) and more.max() > 0 else ""
