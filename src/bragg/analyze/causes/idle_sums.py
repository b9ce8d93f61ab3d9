"""Waits of GPUs as recorders add them up, by node: what is known without a timeline."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from bragg.analyze.idle_folded import folded_idle
from bragg.analyze.idle_paths import NOT_KNOWN, OTHERS, SHORT
from bragg.analyze.wall.wall_time import Steady
from bragg.model import IdleKind, IdleTable, Profile
from bragg.model.table import FloatArray


def added_up_idle_ns(profile: Profile, steady: Steady | None, devices: Container[int] | None) -> FloatArray:
    """Idle time by node, and behind the nodes as `with_idle_paths` has it: [n_nodes + 1 + len(OTHERS)].

    Args:
        profile: Without a timeline.
        steady: The part that is meant; None: the whole run.
        devices: Ordinals of the GPUs that are meant; None: all.
    """
    others, by_node = np.zeros(len(OTHERS) + 1), np.zeros(len(profile.tree))
    total_ns = 0.0
    for device in folded_idle(profile, steady, devices):
        kind, idle_ns = device.rows.kind, device.idle_ns
        unknown = np.isin(kind, (IdleKind.NOT_KNOWN, IdleKind.SHORT_NOT_KNOWN))
        late, waited = kind == IdleKind.LATE, kind == IdleKind.WAITED
        np.add.at(by_node, device.rows.node[late], idle_ns[late])
        others[NOT_KNOWN] += idle_ns[unknown].sum()
        others[-1] += idle_ns[waited].sum()
        others[SHORT] += idle_ns[~late & ~unknown & ~waited].sum()
        total_ns += float(idle_ns.sum())
    found: FloatArray = np.append(by_node, others)
    return found * _share_that_fits(steady, devices, total_ns)


def added_up_pauses(profile: Profile, steady: Steady | None, devices: Container[int] | None) -> FloatArray:
    """How often GPUs waited for each node's own host code, [n_nodes]; arguments as of `added_up_idle_ns`."""
    counts: FloatArray = np.zeros(len(profile.tree))
    for device in folded_idle(profile, steady, devices):
        late = device.rows.kind == IdleKind.LATE
        np.add.at(counts, device.rows.node[late], (device.rows.count * device.share)[late])
    return counts


def late_rows(profile: Profile, devices: Container[int] | None) -> IdleTable:
    """Waits of the whole run for code of the host; arguments as of `added_up_idle_ns`."""
    table = profile.idle
    is_meant = [devices is None or device in devices for device in table.device.tolist()]
    return table.take((table.kind == IdleKind.LATE) & np.array(is_meant, np.bool_))


def _share_that_fits(steady: Steady | None, devices: Container[int] | None, idle_ns: float) -> float:
    """Bins may be longer than the steady state: what falls to it is at most the time in which GPUs did not work."""
    if not steady or not steady.busy or not idle_ns:
        return 1.0
    rests = sum(1 - busy for device, busy in steady.busy.items() if devices is None or device in devices)
    return min(rests * steady.duration_ns / idle_ns, 1.0)
