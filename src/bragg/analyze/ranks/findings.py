"""What comparing ranks found, as findings, the one that costs most first."""

from __future__ import annotations

import numpy as np

from bragg.analyze.ranks.answer import RanksAnswer
from bragg.analyze.ranks.causes import LateCause, Reason
from bragg.analyze.ranks.links import SlowLink
from bragg.analyze.ranks.stragglers import Straggler, When
from bragg.model import Confidence, Finding, Gain, Quantity, Severity

_WARNING = 0.02
HINTS = {
    Reason.SLOW_GPU: "compare its clocks, power and temperature with those of its peers (nvidia-smi -q -d PERFORMANCE)",
    Reason.SLOW_KERNEL: "compare shapes, data and the chosen algorithm of this kernel on both ranks",
    Reason.MORE_WORK: "give each rank the same work: shapes, padding, logging, evaluation",
    Reason.INPUT: "more or faster workers for its data loader; look at its disk and at the size of its samples",
    Reason.COPIES: "pinned memory and equal sizes; look at the placement of its process (NUMA)",
    Reason.HOST: "look at what it does in Python between launches: logging, checkpoints, garbage collection; and at "
    "other processes on its cores",
    Reason.SLOW_CPU: "compare its cores, their load and its threads (OMP_NUM_THREADS) with those of its peers",
    Reason.BETWEEN_OPERATORS: "look at what it does in Python: input, logging, checkpoints, garbage collection; and at "
    "other processes on its cores",
    Reason.LATE_START: "look at what it did before the first collective: reading data and weights, compiling, waiting "
    "for its node",
    Reason.UNKNOWN: "",
}


def findings_of(answer: RanksAnswer) -> list[Finding]:
    """Stragglers, then a slow link; by cost."""
    found = [_of_straggler(answer, late, cause) for late, cause in answer.stragglers]
    if answer.link is not None:
        found.append(_of_link(answer, answer.link))
    return sorted(found, key=_rank_of)


def _rank_of(finding: Finding) -> tuple[bool, float]:
    """What is lost in each step comes before what is lost once."""
    return (finding.gain.is_once, -finding.gain.wall_ns) if finding.gain else (True, 0.0)


def _of_straggler(answer: RanksAnswer, late: Straggler, cause: LateCause) -> Finding:
    wall = answer.lateness.wall_ns if answer.lateness else 0.0
    is_start = late.when is When.START
    share = late.cost_ns / wall if wall else 0.0
    work = "operators" if answer.ranks[late.index].is_on_cpus else "kernels"
    evidence = [
        Quantity("rank", float(answer.ranks[late.index].rank)),
        Quantity("cost", late.cost_ns, "ns"),
        Quantity("cost of a late step", late.each_ns, "ns"),
    ]
    if not is_start and late.when is not When.WHOLE:
        evidence += [Quantity("late steps", float(len(late.steps))), Quantity("first late step", _step(late, 0))]
    if cause.ratio != 1.0:
        evidence.append(Quantity("ratio to its peers", cause.ratio))
    return Finding(
        "straggler",
        Severity.WARNING if share >= _WARNING and not is_start else Severity.NOTE,
        f"{_who(answer, late)} {_when(answer, late)}: {_why(cause, work)}",
        HINTS[cause.reason],
        evidence=tuple(evidence),
        gain=Gain(late.cost_ns, max(wall, late.cost_ns), is_once=is_start, waits_are_measured=answer.is_whole),
        confidence=Confidence.PROVEN if answer.is_whole and len(answer.ranks) > 2 else Confidence.LIKELY,
    )


def _who(answer: RanksAnswer, late: Straggler) -> str:
    rank = answer.ranks[late.index]
    hosts = {each.host for each in answer.ranks}
    return f"rank {rank.rank}{f' ({rank.host})' if len(hosts) > 1 and rank.host else ''}"


def _when(answer: RanksAnswer, late: Straggler) -> str:
    found = answer.lateness
    assert found is not None
    unit = "step" if found.is_unit_step else "round"
    is_one = len(answer.ranks) == 2
    others = "the other rank" if is_one else f"the other {len(answer.ranks) - 1} ranks"
    each = _time(late.each_ns)
    if late.when is When.START:
        last = f"{unit} {_step(late, -1):.0f}" if len(late.steps) > 1 else f"the first {unit}"
        return f"starts late: {others} {'waits' if is_one else 'wait'} {each} for it before {last} is over"
    if late.when is When.WHOLE:
        return f"arrives last: it spends {each} less in collectives than {others}"
    usual = _time(float(np.median(found.step_ns[late.steps])))
    total = f"{_time(late.cost_ns)} in all"
    if late.when is When.ONCE:
        return f"holds up {others} once, by {each} in {unit} {_step(late, 0):.0f}"
    if late.when is When.SOMETIMES:
        return f"holds up {others} by {each} in {len(late.steps)} of {found.n_steps} {unit}s{_rhythm(late)}, {total}"
    since = f" from {unit} {_step(late, 0):.0f} on" if late.when is When.SINCE else ""
    return f"holds up {others} by {each} of each {usual} {unit}{since}, {total}"


def _rhythm(late: Straggler) -> str:
    """How far apart its late steps are, where that is always the same."""
    apart = np.unique(np.diff(late.steps))
    is_regular = len(late.steps) > 2 and len(apart) == 1 and apart[0] > 1
    return (
        f" (every {apart[0]} from {_step(late, 0):.0f} on)" if is_regular else f" (the first is {_step(late, 0):.0f})"
    )


def _step(late: Straggler, row: int) -> float:
    """The number of a late step in the program: the first one, 0, is that of the start."""
    return float(late.steps[row] + 1)


def _why(cause: LateCause, work: str) -> str:
    at = f", most in {cause.path}" if cause.path else ""
    if cause.reason is Reason.SLOW_GPU:
        return f"its GPU takes {cause.ratio:.2f} times as long for the same kernels{at}"
    if cause.reason is Reason.SLOW_CPU:
        return f"its operators take {cause.ratio:.2f} times as long{at}"
    if cause.reason is Reason.SLOW_KERNEL:
        return f"one kernel takes {cause.ratio:.2f} times as long as on its peers: {cause.path}"
    if cause.reason is Reason.MORE_WORK:
        return f"it runs {(cause.ratio - 1) * 100:.0f} % more {work}, {_time(cause.each_ns)} of them{at}"
    if cause.reason is Reason.INPUT:
        return f"it waits {_time(cause.each_ns)} longer for its input{at}"
    if cause.reason is Reason.COPIES:
        return f"its copies take {_time(cause.each_ns)} longer{at}"
    if cause.reason is Reason.LATE_START:
        return "it came to the first collective last"
    if cause.reason is Reason.BETWEEN_OPERATORS:
        return f"it spends {_time(cause.each_ns)} more between operators{at}"
    if cause.reason is Reason.UNKNOWN:
        return "why is not known, since only collectives were recorded"
    return f"its host launches late while its GPU has nothing to do{at}"


def _of_link(answer: RanksAnswer, link: SlowLink) -> Finding:
    wall = answer.lateness.wall_ns if answer.lateness else 0.0
    numbers = " or ".join(str(answer.ranks[index].rank) for index in link.ranks[:8])
    return Finding(
        "slow-link",
        Severity.WARNING,
        f"transfers are {link.ratio:.1f} times as long in {_groups(link)} as in equal ones: the link of rank "
        f"{numbers} is slow, {_time(link.cost_ns)} in all",
        "compare its topology and its errors: nvidia-smi topo -m, nvidia-smi nvlink -e, its network card",
        evidence=(Quantity("ratio to equal groups", link.ratio), Quantity("cost", link.cost_ns, "ns")),
        gain=Gain(link.cost_ns, max(wall, link.cost_ns), waits_are_measured=True),
    )


def _groups(link: SlowLink) -> str:
    return f"group{'s' if len(link.groups) > 1 else ''} {', '.join(link.groups[:3])}"


def _time(time_ns: float) -> str:
    """With its unit, three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if time_ns >= size:
            return f"{time_ns / size:.3g} {unit}"
    return f"{time_ns / 1e3:.3g} us"
