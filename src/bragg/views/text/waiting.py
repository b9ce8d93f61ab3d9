"""Whether the host waits, for the GPU or for anything else, in sentences."""

from __future__ import annotations

import numpy as np

from bragg.analyze.causes.other_threads import other_threads
from bragg.analyze.imports import imports_apart, without_imports
from bragg.grouping.workers import WORKER_METRICS, WORKER_TIME
from bragg.model import FrameKind, Profile
from bragg.model.host_time import WAIT_TIME, of_main_thread
from bragg.model.ids import FrameId
from bragg.model.table import FloatArray
from bragg.views.text.bounds_text import threads_text
from bragg.views.text.folding_rules import library_of
from bragg.views.text.labels import Labels
from bragg.views.text.units import count_text, share_text, time_text

# Less is no reason to look at it.
_LITTLE = 0.05
_LONGER = 1.1


def waiting_lines(profile: Profile) -> list[str]:
    """How long the host waited for the GPU, and for anything else, and where most; nothing where it hardly did."""
    of_main = of_main_thread(profile)
    found = [_line(of_main, metric, whom) for metric, whom in (("sync_time", " for the GPU"), (WAIT_TIME, ""))]
    return [line for line in (*found, _threads_line(profile), workers_line(profile)) if line]


def _threads_line(profile: Profile) -> str:
    """What other threads than the main one ran; without a GPU, what bounds the program says it."""
    threads = other_threads(profile) if profile.measured("gpu_time") else None
    if threads is None or threads.time_ns < _LITTLE * (profile.run.duration_ns or 0):
        return ""
    return f"beside the main thread {threads_text(threads)}"


def threads_add_up(whole: Profile, shown: Profile) -> str:
    """That host time is that of all threads, where it is longer than the run; empty elsewhere."""
    total_ns, ran_ns = shown.total("host_time"), whole.run.duration_ns
    if not ran_ns or whole.run.is_merged or whole.run.workers or total_ns < _LONGER * ran_ns:
        return ""
    return f"host_time adds up over threads: {time_text(total_ns)} in a run of {time_text(ran_ns)}"


def waits_mostly(profile: Profile) -> bool:
    """Whether threads waited for most of their time, apart from imports."""
    if WAIT_TIME not in profile.metrics:
        return False
    return profile.total(WAIT_TIME) > 0.5 * of_main_thread(without_imports(profile)).total("host_time")


def workers_line(profile: Profile) -> str:
    """What the workers of data loaders did, beside the main process; empty: there were none."""
    if not profile.run.workers or WORKER_TIME not in profile.metrics:
        return ""
    ran_ns = profile.total(WORKER_TIME)
    waited_ns = profile.total(WORKER_METRICS[WAIT_TIME]) if WORKER_METRICS[WAIT_TIME] in profile.metrics else 0
    workers = count_text(len(profile.run.workers), "data loader worker")
    idle = f", {share_text(waited_ns / ran_ns)} of it waiting" if ran_ns else ""
    return f"{workers} ran {time_text(ran_ns)} beside{idle}: bragg view --group-by process"


def _line(profile: Profile, metric: str, whom: str) -> str:
    if metric not in profile.metrics or profile.total("host_time") <= 0:
        return ""
    profile, imports_ns = imports_apart(profile) if metric == WAIT_TIME else (profile, 0.0)
    own_ns = _of_program(profile, metric)
    waited_ns = float(own_ns.sum())
    whole_ns = profile.total("host_time")
    if metric == WAIT_TIME and profile.run.duration_ns and not profile.run.is_merged:
        # Of the main thread, which lasts as long as the run.
        whole_ns = min(whole_ns, max(profile.run.duration_ns - imports_ns, waited_ns))
    share = waited_ns / whole_ns if whole_ns else 0.0
    if share < _LITTLE:
        return ""
    where, most_ns = _hottest_place(profile, own_ns)
    most = f", {share_text(most_ns / waited_ns)} of that in {where}"
    who = "host" if metric == "sync_time" else "main thread"
    is_whole = metric == WAIT_TIME and profile.measured("gpu_time")
    its_time = f"its time{' in the whole run' * is_whole}"
    if imports_ns:
        its_time = f"its {time_text(whole_ns)} after imports"
    return f"the {who} waited {time_text(waited_ns)}{whom}, {share_text(share)} of {its_time}{most}"


def _of_program(profile: Profile, metric: str) -> FloatArray:
    """The time of each node, without that of kernels that are interpreted: the interpreter's threads wait there."""
    own_ns = profile.own(metric).astype(np.float64)
    return np.where(profile.tree.kind == FrameKind.KERNEL, 0.0, own_ns) if metric == WAIT_TIME else own_ns


def _hottest_place(profile: Profile, own_ns: FloatArray) -> tuple[str, float]:
    """The code of the program that waits longest, whatever it calls to do so, and how long."""
    tree = profile.tree
    is_own_code = np.array(
        [
            kind in (FrameKind.SCOPE, FrameKind.OPERATOR) or (kind == FrameKind.PYTHON and not library_of(file))
            for kind, file in zip(tree.frames.kind.tolist(), tree.frames.file, strict=True)
        ]
    )[tree.frame]
    place = np.full(len(tree), tree.frame[0])  # the frame of the innermost own code at or above each node
    for level in tree.levels[1:]:
        place[level] = np.where(is_own_code[level], tree.frame[level], place[tree.parent[level]])
    by_place = np.bincount(place, weights=own_ns, minlength=len(tree.frames))
    hottest = FrameId(int(by_place.argmax()))
    return Labels(tree.frames).in_sentence(hottest), float(by_place[hottest])
