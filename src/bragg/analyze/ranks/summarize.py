"""What a rank's profile tells for the comparison with others."""

from __future__ import annotations

import numpy as np

from bragg.analyze.imports import without_imports
from bragg.analyze.ranks.arrivals import arrivals_of, host_time_in_steps
from bragg.analyze.ranks.collectives import collectives_of, host_of_collectives, kernel_calls, sums_of
from bragg.analyze.ranks.path_ids import frame_ids, path_ids, path_label
from bragg.model import Profile
from bragg.model.meta.nccl import nccl_of
from bragg.model.ranks.summary import PathTable, RankSummary
from bragg.model.table import Int64Array


def summarize(profile: Profile, rank: int | None = None) -> RankSummary:
    """The summary of one rank.

    Args:
        profile: Of its process. Without a timeline, or with one of other work alone, the sums of the run stand for
            the collectives.
        rank: Its number; None: as the profile says, else 0.
    """
    tree = profile.tree
    texts = tree.frames.labels()
    ids = path_ids(tree, texts)
    found = kernel_calls(profile, ids)
    calls, collectives = collectives_of(profile, found)
    is_on_cpus = "gpu_time" not in profile.metrics and not len(calls)
    if is_on_cpus:
        calls, collectives = arrivals_of(profile, ids)
    is_whole = len(collectives) > 0
    if not is_whole and not is_on_cpus:
        calls, collectives = sums_of(profile, found)
    gpu_ns, gpu_count = _own(profile, "gpu_time"), _own(profile, "gpu_count")
    host_ns = _own(without_imports(profile), "host_time")  # which takes as long as the disk likes
    if is_on_cpus and (in_steps_ns := host_time_in_steps(profile)) is not None:
        host_ns = in_steps_ns
    nodes = np.flatnonzero((gpu_ns > 0) | (host_ns > 0))
    run = profile.run
    is_communication = found.is_communication | (host_of_collectives(tree) & (gpu_ns == 0))
    paths = PathTable(
        path=ids[nodes],
        kernel=frame_ids(tree, texts)[nodes],
        is_communication=is_communication[nodes].astype(np.int32),
        gpu_count=gpu_count[nodes],
        gpu_ns=gpu_ns[nodes],
        host_ns=host_ns[nodes],
    )
    return RankSummary(
        rank=rank if rank is not None else run.rank or 0,
        host=run.host,
        device=next((str(device.get("name", "")) for device in run.devices if device), ""),
        wall_ns=run.gpu_span_ns or run.duration_ns or 0,
        is_whole=is_whole,
        is_on_cpus=is_on_cpus,
        is_cut_short=run.is_cut_short,
        calls=calls,
        collectives=lambda: collectives,
        paths=lambda: paths,
        clock=run.clock,
        labels=lambda: [path_label(tree, texts, node) for node in nodes.tolist()],
        ways=_ways(profile),
    )


def _ways(profile: Profile) -> dict[tuple[str, str, int], str]:
    told = nccl_of(profile.meta)
    calls = sorted(told.calls if told is not None else (), key=lambda call: call.calls)
    return {(call.group, call.operation, call.size_bytes): call.way for call in calls}


def _own(profile: Profile, name: str) -> Int64Array:
    if name not in profile.metrics:
        return np.zeros(len(profile.tree), np.int64)
    own: Int64Array = np.nan_to_num(profile.own(name)).astype(np.int64)
    return own
