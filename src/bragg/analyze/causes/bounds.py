"""What bounds a program: the parts of its steady state, which add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bragg.analyze.causes.compiled_meanwhile import compiled_meanwhile_ns
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hardware_limits import Limits, hardware_limits
from bragg.analyze.causes.host_shares import HostShare, host_shares
from bragg.analyze.causes.host_steps import made_steps
from bragg.analyze.causes.kernel_class import CLASSES, PRODUCTS, UNNAMED, class_of, classes_of_nodes
from bragg.analyze.causes.other_threads import OtherThreads, other_threads
from bragg.analyze.imports import imports_apart
from bragg.analyze.wall.turns import turns_of
from bragg.model import FrameKind

BOTH = "the GPU and the host"
"""Both take much of the time, and nothing tells how much of it is at the same time."""

# A GPU that works less waits for most of the time.
_BUSY = 0.5
# One that waits for the host about as long as it works gains less by faster kernels, some of which the host hides.
_AS_LONG = 0.8
# A special cause is named from this share of the wall time on, as in the rules about steps; below, it is the host.
_NAMED = 0.2
_ON_GPU = ("communication", "copies")
_SPECIAL = (*_ON_GPU, "input", "compilation", "allocation", "synchronisation", "other work")
_OTHER_WORK = "other streams, copies, events or programs"
_OF_PART = {"copies to the GPU": "copies", _OTHER_WORK: "other work"}
UNKNOWN = "reasons that were not recorded"
# From the first to the last of less work is little more than that work itself.
_LEAST_WORK = 10

Lacks = Literal["", "a kernel that ends", "more work", "times"]


@dataclass(frozen=True)
class Part:
    """A part of the wall time.

    Attributes:
        name: What the time went to.
        share: Of the wall time, 0 to 1.
        is_gpu: Whether a GPU worked, else it waited.
        at: Of the host's time, file and line of the program with most of it; empty: not known.
    """

    name: str
    share: float
    is_gpu: bool
    at: str = ""


@dataclass(frozen=True)
class ForTarget:
    """Kernels that were executed on the CPU, and compiled for a GPU.

    Attributes:
        target: That GPU.
        n_kernels: How many were compiled.
        n_launches: How many launches were executed.
    """

    target: str
    n_kernels: int
    n_launches: int


@dataclass(frozen=True)
class Bounds:
    """What bounds a program.

    Attributes:
        by: `the GPU`, `the host`, `input`, `compilation`, `synchronisation`, `communication`, `allocation`, `copies`;
            `BOTH`: the GPU and the host, and how much each would save is not known;
            `other work`, of streams or programs, which launched work waited for; `other threads`, which compute while
            the main one waits; `counting launches exactly`: the host
            waited for it, whatever else it did; without a GPU a part of the host's time; empty: not known.
        busy: Share in which a GPU worked; None: not known.
        parts: They add up to 1 where a timeline tells; the largest first.
        of_ns: The wall time that they are parts of; without a GPU that of the steps.
        n_steps: Steps in it; 0: not known.
        is_steady: Whether it is the steady state; else it is the whole run.
        is_estimate: Whether counts and times are estimated from sums of the run, because no timeline has them.
        gpu: Ordinal of the busiest GPU, whose time it is.
        n_gpus: GPUs that worked.
        host_ns: Without a GPU, the host's time apart from imports, which the parts are of; 0: a GPU worked.
        imports_ns: Without a GPU, the host's time in imports.
        step: What to call a step.
        gpu_ns: GPU time of all; 0: no GPU worked.
        limits: What of the GPU bounds its work; None: not known.
        lacks: Why `busy` is not known; empty: it is, or no GPU worked.
        threads: Without a GPU, what others than the main thread ran meanwhile; None: nothing that samples found.
        for_target: Kernels that no GPU executed, and that were compiled for one; None: there are none.
    """

    by: str
    busy: float | None
    parts: tuple[Part, ...]
    of_ns: float
    n_steps: int
    is_steady: bool
    is_estimate: bool = False
    gpu: int = 0
    n_gpus: int = 1
    host_ns: float = 0.0
    imports_ns: float = 0.0
    step: str = "step"
    gpu_ns: float = 0.0
    limits: Limits | None = None
    lacks: Lacks = ""
    threads: OtherThreads | None = None
    for_target: ForTarget | None = None

    @property
    def cause(self) -> str:
        """`by`, or of the GPU what bounds most of its work, if that is known."""
        if self.by != "the GPU" or self.limits is None:
            return self.by
        name, share = max(self.limits.named.items(), key=lambda each: each[1])
        return f"the GPU's {name}" if share > _BUSY else self.by


def bounds_of(evidence: Evidence) -> Bounds:
    """The parts of the wall time, and the one that decides it; of a program without a GPU those of the host's time."""
    if shares := host_shares(evidence):
        return _host_bounds(evidence, shares)
    busy = None if _lacks(evidence) else evidence.busy
    parts = _gpu_parts(evidence, busy) if busy else []
    if busy is not None and evidence.idle_ns is not None and evidence.wall_ns:
        parts += _waiting_parts(evidence, 1 - busy)
    by = "" if busy is None else _by(_winner(evidence, busy), busy, parts)
    if evidence.profile.run.exact_launches and by != "the GPU":
        by = "counting launches exactly"
    parts.sort(key=lambda part: -part.share)
    is_estimate = busy is not None and not evidence.has_timeline
    return Bounds(
        *(by, busy, tuple(parts), evidence.wall_ns, evidence.n_steps, evidence.of_steady, is_estimate),
        gpu=evidence.bounding.busiest,
        n_gpus=evidence.n_devices,
        step=evidence.steady.step if evidence.steady else "step",
        gpu_ns=float(evidence.gpu_ns.sum()),
        limits=hardware_limits(evidence),
        lacks=_lacks(evidence),
    )


def _host_bounds(evidence: Evidence, shares: list[HostShare]) -> Bounds:
    host_ns = sum(each.time_ns for each in shares)
    shares = sorted(shares, key=lambda each: -each.time_ns)
    parts = tuple(Part(each.name, each.time_ns / host_ns, False, each.at) for each in shares)
    of_ns, n_steps, step = _host_steps(evidence)
    imports_ns = imports_apart(evidence.profile)[1]
    threads = other_threads(evidence.profile)
    is_beside = shares[0].name == "waiting" and threads and threads.time_ns > _BUSY * shares[0].time_ns
    by = "other threads" if is_beside else shares[0].name
    return Bounds(
        *(by, None, parts, of_ns, n_steps, False),
        host_ns=host_ns,
        imports_ns=imports_ns,
        step=step,
        threads=threads,
        for_target=_for_target(evidence),
    )


def _for_target(evidence: Evidence) -> ForTarget | None:
    run = evidence.profile.run
    if not evidence.is_for_target:
        return None
    return ForTarget(run.target, len(run.compiled_for_target), run.interpreted_launches)


def _host_steps(evidence: Evidence) -> tuple[float, int, str]:
    """How long steps without a GPU took, how many there are, and what to call one; else the same of turns of a loop."""
    if steps := made_steps(evidence):
        return steps.duration_ns, steps.count, steps.noun
    turns = turns_of(evidence.profile)
    return (turns.host_ns * turns.count, turns.count, "step") if turns else (0.0, 0, "step")


def _lacks(evidence: Evidence) -> Lacks:
    """What of a GPU's work is not there to judge it by."""
    if evidence.profile.run.kernel_error:
        return "a kernel that ends"
    count = evidence.gpu_count.sum()
    if 0 < count < _LEAST_WORK:
        return "more work"
    return "" if count and evidence.busy is not None and evidence.wall_ns else "times"


def _gpu_parts(evidence: Evidence, busy: float) -> list[Part]:
    """Each class of kernels by its share of GPU time: what ran side by side shares the time."""
    row, gpu_ns = classes_of_nodes(evidence.profile.tree), evidence.bounding_ns
    for kernel in evidence.hot_kernels:
        # What the name does not tell, the code may.
        if kernel.compiled and kernel.compiled.dots and class_of(kernel.name) in UNNAMED:
            row[kernel.nodes] = CLASSES.index(PRODUCTS)
    total = np.bincount(row[row >= 0], weights=gpu_ns[row >= 0], minlength=len(CLASSES))
    if not total.sum():
        return [Part(UNNAMED[-1], busy, True)]  # what worked has no names
    return [Part(CLASSES[at], float(total[at] / total.sum()) * busy, True) for at in np.flatnonzero(total)]


def _waiting_parts(evidence: Evidence, idle: float) -> list[Part]:
    profile, idle_ns = evidence.profile, evidence.idle_ns
    if idle_ns is None or idle <= 0:
        return []
    own_ns = idle_ns - evidence.code_wait_ns
    host, is_api = evidence.host, profile.tree.kind == FrameKind.GPU_API
    found = [
        ("input", host.input),
        ("output", host.output),
        ("synchronisation", host.waiting),
        ("allocation", host.allocation),
        ("copies to the GPU", host.copying),
        ("operators that plan", host.planning),
        ("operators on the CPU", host.computing),
        ("launches", host.launching & is_api),
        ("Python and operators", host.launching & ~is_api),
    ]
    waits = [(name, float(own_ns[nodes].sum())) for name, nodes in found]
    compiled_ns = compiled_meanwhile_ns(evidence)
    waits.append(("compilation", float(own_ns[host.compilation].sum()) + compiled_ns))
    waits.append(("code that launches nothing", float(evidence.code_wait_ns.sum()) - compiled_ns))
    queued, unknown = evidence.idle_elsewhere_ns
    waited = evidence.idle_waited_ns
    waits += [("between a launch and its start", queued - waited), (_OTHER_WORK, waited)]
    waits += [(UNKNOWN, unknown)]
    known = sum(value for _, value in waits)
    whole = max(idle * evidence.wall_ns, known)
    # Before the first launch of the steady state and after the last one, nothing waits for a launch.
    waits[-1] = (UNKNOWN, unknown + whole - known)
    return [Part(name, value / whole * idle, False) for name, value in waits if value > 0]


def _winner(evidence: Evidence, busy: float) -> str:
    """Whether half of the GPU's work saves more than half of the host's part: `the GPU`, `the host` or `BOTH`."""
    if busy < _BUSY:
        return "the host"
    everything = np.ones(len(evidence.profile.tree), np.bool_)
    of_gpu, of_host = evidence.gpu_gain(everything, 0.5), evidence.host_gain(everything, 0.5)
    host = of_host.share if of_host else 0.0
    if of_gpu is None:
        return "the host" if 2 * host >= _AS_LONG * busy else BOTH
    return "the GPU" if of_gpu.share > host else "the host"


def _by(winner: str, busy: float, parts: list[Part]) -> str:
    """What `winner` does for most of its time, if that has a name of its own."""
    shares = dict.fromkeys(_SPECIAL, 0.0)
    for part in parts:
        name = _OF_PART.get(part.name, part.name)
        name = name if name in shares or name == UNKNOWN else "the GPU" if part.is_gpu else "the host"
        shares[name] = shares.get(name, 0.0) + part.share
    special = max(_SPECIAL, key=lambda name: shares[name])
    if winner != "the host":
        return special if special in _ON_GPU and shares[special] > busy / 2 else winner
    host = shares.get("the host", 0.0)
    if shares.get(UNKNOWN, 0.0) > max(host, shares[special]):
        return ""
    return special if shares[special] >= max(_NAMED, host) else "the host"
