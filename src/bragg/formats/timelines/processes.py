"""A timeline of several processes as a profile of each, and one of several GPUs: ranks of a job in one file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.formats.timelines.metrics import durations_of_slices, gpu_facts, metrics_of_slices
from bragg.model import CounterTable, Profile, TrackKind
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray
from bragg.model.transform import with_ancestors


def ranks_within(profile: Profile) -> list[Profile]:
    """The processes of a timeline as ranks, by number; empty: there are fewer than two.

    If some ran work on GPUs, others (launchers, servers) are not ranks. Numbers are those of the tracks; where tracks
    do not say a different one for each process, the order of hosts and process ids.
    """
    tracks = profile.tracks
    rows = list(zip(tracks.rank.tolist(), tracks.host, tracks.process.tolist(), strict=True))
    used = np.unique(profile.slices.track)
    on_gpu = used[tracks.kind[used] == TrackKind.GPU_STREAM]
    places = sorted({rows[row] for row in (on_gpu if len(on_gpu) else used).tolist()})
    if len(places) < 2:
        return []
    told = {rank for rank, _, _ in places}
    is_told = len(told) == len(places) and min(told) >= 0
    numbers = [place[0] if is_told else order for order, place in enumerate(places)]
    world = max(numbers) + 1
    return [
        _of_tracks(profile, np.array([row == place for row in rows], np.bool_), number, world)
        for number, place in zip(numbers, places, strict=True)
    ]


def gpus_within(profile: Profile) -> list[Profile]:
    """The GPUs of one process as ranks, each beside what its host did; empty: there are fewer than two."""
    tracks = profile.tracks
    is_gpu = tracks.kind == TrackKind.GPU_STREAM
    used = np.unique(profile.slices.track)
    gpus = np.unique(tracks.device[used[is_gpu[used]]]).tolist()
    if len(gpus) < 2:
        return []
    chosen = [~is_gpu | (tracks.device == gpu) for gpu in gpus]
    return [_of_tracks(profile, own, gpu, gpus[-1] + 1) for gpu, own in zip(gpus, chosen, strict=True)]


def _of_tracks(profile: Profile, chosen: BoolArray, rank: int, world: int) -> Profile:
    """The part of a profile that is on some tracks, which are those of one process."""
    tracks = profile.tracks.take(chosen)
    tracks = tracks.replace(rank=np.full(len(tracks), rank, np.int32))
    kept = profile.slices.take(chosen[profile.slices.track])
    slices = kept.replace(track=(np.cumsum(chosen) - 1)[kept.track].astype(np.int32))
    is_used = np.bincount(slices.node, minlength=len(profile.tree)) > 0
    is_used[0] = True
    part = replace(
        profile,
        metrics={},
        tracks=tracks,
        slices=slices,
        counters=CounterTable.empty(),
        durations=profile.durations.empty(),
        idle=profile.idle.empty(),
    )
    part = regroup(profile.tree, dropped=~with_ancestors(profile.tree, is_used)).apply(part)
    facts = {name: value for name, value in profile.meta.items() if not name.startswith("gpu_")}
    place = {"rank": rank, "ranks": world, "pid": int(tracks.process[0]), "host": tracks.host[0]}
    return replace(
        part,
        meta={**facts, **place, **gpu_facts(tracks, part.slices)},
        metrics=metrics_of_slices(part.tree, tracks, part.slices),
        durations=durations_of_slices(part.tree, tracks, part.slices),
    )
