"""What a program waits for while a batch is made, by the main thread or by workers."""

from __future__ import annotations

import re

import numpy as np

from bragg.analyze.causes.facts import Facts
from bragg.analyze.causes.paths import below, in_files, lines_above, named
from bragg.grouping.workers import WORKER_METRICS, WORKER_TIME
from bragg.model import FrameKind, Profile
from bragg.model.finding import percent_text
from bragg.model.host_time import WAIT_TIME
from bragg.model.table import BoolArray

__all__ = [
    "IDLE_WORKERS",
    "NOT_MORE_WORKERS",
    "SINGLE",
    "WORKERS",
    "batches_made",
    "costly_item_text",
    "idle_share_of_workers",
    "is_of_gpu_items",
    "late_batches_ns",
    "loading",
    "waits_for_batches_ns",
]

SINGLE, WORKERS = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
"""Kinds of iterators of a DataLoader: it has no workers, or some."""
IDLE_WORKERS = 0.75
"""Share of their time: more workers than those that wait for more of it help nothing."""
NOT_MORE_WORKERS = (
    "not more num_workers: what is late is starting them (persistent_workers=True), handing batches over (larger ones, "
    "of fewer tensors), or a core for them"
)
_WAIT = WORKER_METRICS[WAIT_TIME]
_ITERATOR = "enumerate(DataLoader)#"
_FETCH = re.compile(r"torch[/\\]utils[/\\]data[/\\]_utils[/\\]fetch\.py$")
# A line with less is one among many.
_COSTLY = 0.1
_MOSTLY = 0.75


def loading(profile: Profile, kind: str) -> BoolArray:
    """What iterators of a kind run: [n_nodes]."""
    return below(profile, named(profile, lambda name: name.startswith(_ITERATOR + kind)))


def batches_made(facts: Facts, inside: BoolArray) -> float:
    """How many batches were made by what iterators run, [n_nodes]."""
    return float(facts.calls[inside & ~inside[np.maximum(facts.profile.tree.parent, 0)]].sum())


def is_of_gpu_items(facts: Facts) -> bool:
    """Whether a loader without workers launches kernels for most of its batches."""
    inside = loading(facts.profile, SINGLE)
    kernels = inside & (facts.profile.tree.kind == FrameKind.KERNEL)
    return float(facts.gpu_count[kernels].sum()) >= _MOSTLY * batches_made(facts, inside) > 0


def waits_for_batches_ns(facts: Facts, kind: str) -> float:
    """How long GPUs waited for loaders of a kind, as far as that is known."""
    if facts.idle_ns is None:
        return 0.0
    return float(facts.idle_ns[loading(facts.profile, kind)].sum()) + (
        late_batches_ns(facts) if kind == SINGLE else 0.0
    )


def late_batches_ns(facts: Facts) -> float:
    """Part of `code_wait_ns` outside of loaders for which a loader without workers ran: its launch came after it.

    Nothing else is launched meanwhile: a GPU waits as long as the loader takes, less what is queued.
    """
    if facts.idle_ns is None:
        return 0.0
    inside = loading(facts.profile, SINGLE)
    missing_ns = float(facts.host_ns[inside].sum()) - float(facts.idle_ns[inside].sum())
    return float(np.clip(missing_ns, 0.0, facts.code_wait_ns[~inside].sum()))


def idle_share_of_workers(profile: Profile) -> float:
    """Share of their time in which workers waited for something to do, not for what items are made of; 0: not known."""
    if WORKER_TIME not in profile.metrics or _WAIT not in profile.metrics or not profile.total(WORKER_TIME):
        return 0.0
    waited_ns = np.nan_to_num(profile.own(_WAIT).astype(np.float64))
    at_work = below(profile, in_files(profile, _FETCH))
    return float(waited_ns[~at_work].sum()) / float(profile.total(WORKER_TIME))


def costly_item_text(profile: Profile) -> str:
    """The line of the program with most of the time in which workers made batches; empty: none has much of it."""
    if WORKER_TIME not in profile.metrics:
        return ""
    own_ns = np.nan_to_num(profile.own(WORKER_TIME).astype(np.float64))
    if _WAIT in profile.metrics:
        own_ns = own_ns - np.nan_to_num(profile.own(_WAIT).astype(np.float64))
    own_ns = np.where(below(profile, in_files(profile, _FETCH)), own_ns, 0.0)
    tree, took = profile.tree, dict[tuple[str, int], float]()
    for node in np.flatnonzero(own_ns > 0).tolist():
        if lines := lines_above(profile, node):
            frame = tree.frame[lines[-1]]
            line = tree.frames.file[frame].rpartition("/")[2], int(tree.frames.line[frame])
            took[line] = took.get(line, 0.0) + float(own_ns[node])
    share, (file, number) = max(((ns / float(own_ns.sum()), line) for line, ns in took.items()), default=(0.0, ("", 0)))
    return f"{percent_text(share)} of their work at {file}:{number}" if share >= _COSTLY else ""
