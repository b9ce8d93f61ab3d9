"""What a GPU waits for while the main thread itself makes a batch."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.facts import Facts
from bragg.analyze.causes.paths import below, named
from bragg.model import Profile
from bragg.model.table import BoolArray

__all__ = ["SINGLE", "WORKERS", "late_batches_ns", "loading"]

SINGLE, WORKERS = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
"""Kinds of iterators of a DataLoader: it has no workers, or some."""
_ITERATOR = "enumerate(DataLoader)#"


def loading(profile: Profile, kind: str) -> BoolArray:
    """What iterators of a kind run: [n_nodes]."""
    return below(profile, named(profile, lambda name: name.startswith(_ITERATOR + kind)))


def late_batches_ns(facts: Facts) -> float:
    """Part of `code_wait_ns` outside of loaders for which a loader without workers ran: its launch came after it.

    Nothing else is launched meanwhile: a GPU waits as long as the loader takes, less what is queued.
    """
    if facts.idle_ns is None:
        return 0.0
    inside = loading(facts.profile, SINGLE)
    missing_ns = float(facts.host_ns[inside].sum()) - float(facts.idle_ns[inside].sum())
    return float(np.clip(missing_ns, 0.0, facts.code_wait_ns[~inside].sum()))
