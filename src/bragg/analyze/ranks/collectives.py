"""The collectives of a recorded process, from the kernels on its timeline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bragg.analyze.ranks.intervals import Busy
from bragg.analyze.ranks.operations import POINT_TO_POINT, Call, CollectiveKernel, call_of_frame, kernel_of_name
from bragg.analyze.wall.step_times import step_times
from bragg.grouping.device_groups import group_on
from bragg.grouping.hlo_names import symbol_of
from bragg.model import FrameKind, Profile, SliceTable, TrackKind
from bragg.model.ids import NodeId
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveSlices, CollectiveTable
from bragg.model.table import BoolArray, Int32Array, Int64Array
from bragg.model.transform import with_descendants
from bragg.model.tree import CallTree

Names: TypeAlias = NDArray[np.str_]

_DATA = "data"
_LEAST_SHARE = 0.2
# What PyTorch and NCCL say of a collective on the host.
_OF_HOST = ("collective ", "NCCL: ", "c10d::")


@dataclass(frozen=True, eq=False)
class KernelCalls:
    """Which nodes are kernels of collectives.

    Attributes:
        calls: The different ones.
        call: Row of `calls` for each node; -1: it is no collective: int32 [n_nodes].
        has_group: Whether the process group of each call is known; otherwise its stream stands for it.
    """

    calls: CollectiveCallTable
    call: Int32Array
    has_group: BoolArray

    @property
    def is_communication(self) -> BoolArray:
        """[n_nodes]."""
        return self.call >= 0


def kernel_calls(profile: Profile, paths: Int64Array) -> KernelCalls:
    """The calls of collectives of a profile; those between two ranks are not asked who waited.

    Args:
        profile: With or without a timeline.
        paths: int64 [n_nodes]: ids of its call paths.
    """
    tree = profile.tree
    told = {frame: each for frame, name in enumerate(tree.frames.name) if (each := call_of_frame(name))}
    kernels = {
        frame: found
        for frame in np.flatnonzero(tree.frames.kind == FrameKind.KERNEL).tolist()
        if (found := kernel_of_name(tree.frames.name[frame])) and (told or found.is_library)
    }
    call: Int32Array = np.full(len(tree), -1, np.int32)
    rows: list[tuple[Call, int]] = []
    known: list[bool] = []
    is_below_told = (tree.kind == FrameKind.KERNEL) & np.isin(tree.frame[tree.parent], list(told))
    for node in np.flatnonzero(np.isin(tree.frame, list(kernels)) | is_below_told).tolist():
        frame = tree.frame_of(node)
        kernel = kernels.get(frame) or _compiled_from(tree, node)
        above = next((told[each] for each in tree.frame[tree.path(node)[::-1]].tolist() if each in told), None)
        if kernel is None or not (kernel.is_library or (above and kernel.operation in (above.operation, ""))):
            continue
        if above is not None:
            above = replace(above, group=group_on(above.group, int(tree.frames.device[frame])))
        call[node] = len(rows)
        rows.append((above or Call("", kernel.operation, kernel.dtype, -1), int(paths[node])))
        known.append(above is not None and bool(above.group))
    calls = CollectiveCallTable(
        group=[each.group for each, _ in rows],
        operation=[each.operation for each, _ in rows],
        dtype=[each.dtype for each, _ in rows],
        size_bytes=np.array([each.size_bytes for each, _ in rows], np.int64),
        path=np.array([path for _, path in rows], np.int64),
    )
    return KernelCalls(calls, call, np.array(known, np.bool_))


def _compiled_from(tree: CallTree, node: NodeId) -> CollectiveKernel | None:
    """The kernel that XLA has compiled for the collective above it: it is called like that operation."""
    names = [tree.frames.name[tree.frame_of(above)] for above in tree.path(node)[-3:]]
    is_one = len(names) == 3 and names[2] == symbol_of(names[0])
    return CollectiveKernel("", "", is_library=False) if is_one else None


def collectives_of(profile: Profile, found: KernelCalls) -> tuple[CollectiveCallTable, CollectiveTable]:
    """A row for each collective on the timeline, and the calls, with streams for groups that are not known.

    A process with several GPUs in a group is as late as the one of them that waits least.
    """
    on_gpu = profile.slices.take(profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM)
    (calls, call_of), rows = _with_groups(found, on_gpu)
    names, gpu = np.array(calls.group, np.str_), profile.tracks.device[on_gpu.track]
    rows = rows[_on_last_gpu(names[call_of[rows]], gpu[rows], on_gpu.duration_ns[rows])]
    tables = []
    for each in np.unique(gpu[rows]).tolist():
        own = rows[gpu[rows] == each]
        tables.append(_of_gpu(profile, found, on_gpu.take(gpu == each), on_gpu.take(own), call_of[own]))
    table = CollectiveTable.concatenate(tables) if tables else CollectiveTable.empty()
    return calls, table.replace(sequence=_numbers(names[table.call]))


def _of_gpu(
    profile: Profile, found: KernelCalls, on_gpu: SliceTable, ours: SliceTable, call: Int32Array
) -> CollectiveTable:
    """The collectives `ours` of one GPU, not yet numbered.

    Args:
        profile: Of the process.
        found: Its kernels of collectives.
        on_gpu: All work of this GPU.
        ours: Its collectives.
        call: Row of the calls for each of them.
    """
    is_message = found.is_communication[on_gpu.node]
    is_copy = (profile.tree.kind == FrameKind.MEMORY)[on_gpu.node]
    others = on_gpu.take(~is_message)
    ends = ours.start_ns + ours.duration_ns
    busy, compute, copies = Busy(others), Busy(on_gpu.take(~is_message & ~is_copy)), Busy(on_gpu.take(is_copy))
    begins = np.sort(on_gpu.start_ns[~is_message & ~is_copy])
    return CollectiveTable(
        call=call.astype(np.int32),
        sequence=np.zeros(len(ours), np.int64),
        step=steps_at(profile, _launched_ns(profile, ours)),
        start_ns=ours.start_ns,
        duration_ns=ours.duration_ns,
        exposed_ns=ours.duration_ns - (busy.before(ends) - busy.before(ours.start_ns)),
        compute_ns=compute.before(ends),
        copy_ns=copies.before(ends),
        data_ns=Busy(waits_for_data(profile)).before(ends),
        launches=np.searchsorted(begins, ends),
    )


def _on_last_gpu(group: Names, gpu: Int32Array, duration_ns: Int64Array) -> BoolArray:
    """Which collectives are on the GPU of the process that waits least in their group: [n]."""
    is_kept = np.ones(len(gpu), np.bool_)
    for name in np.unique(group).tolist() if len(np.unique(gpu)) > 1 else ():
        own = group == name
        _, of = np.unique(gpu[own], return_inverse=True)
        is_kept[own] = of == np.argmin(np.bincount(of, duration_ns[own]) / np.bincount(of))
    return is_kept


def collective_slices(profile: Profile) -> CollectiveSlices:
    """The collectives on the timeline, under the groups and numbers by which `collectives_of` joins ranks."""
    found = kernel_calls(profile, np.zeros(len(profile.tree), np.int64))
    on_gpu = np.flatnonzero(profile.tracks.kind[profile.slices.track] == TrackKind.GPU_STREAM)
    (calls, call_of), rows = _with_groups(found, profile.slices.take(on_gpu))
    names = np.array(calls.group, np.str_)[call_of[rows]]
    groups, group = np.unique(names, return_inverse=True)
    gpu = profile.tracks.device[profile.slices.track[on_gpu[rows]]]
    numbers = np.zeros(len(rows), np.int64)
    for each in np.unique(gpu).tolist():
        numbers[gpu == each] = _numbers(names[gpu == each])
    return CollectiveSlices(on_gpu[rows], groups.tolist(), group.astype(np.int32), numbers)


def host_of_collectives(tree: CallTree) -> BoolArray:
    """Nodes of what the host does in collectives: launching them, and waiting for others to set them up: [n_nodes]."""
    is_one = np.array([name.startswith(_OF_HOST) for name in tree.frames.name], np.bool_)
    return with_descendants(tree, is_one[tree.frame])


def sums_of(profile: Profile, found: KernelCalls) -> tuple[CollectiveCallTable, CollectiveTable]:
    """Where there is no timeline, a row for all collectives together, with the sums of the run.

    Left out are calls that were made at the start alone, and the longest one of each path: they hold what ranks waited
    for each other to begin.
    """
    if "gpu_time" not in profile.metrics or not found.is_communication.any():
        return CollectiveCallTable.empty(), CollectiveTable.empty()
    own_ns = profile.own("gpu_time")
    count = profile.own("gpu_count") if "gpu_count" in profile.metrics else np.zeros(len(own_ns), np.int64)
    longest_ns = np.nan_to_num(profile.own("gpu_time_max")) if "gpu_time_max" in profile.metrics else 0 * own_ns
    is_repeated = found.is_communication & (count >= _LEAST_SHARE * count[found.is_communication].max())
    is_copy = profile.tree.kind == FrameKind.MEMORY
    is_compute = ~found.is_communication & ~is_copy
    told = profile.run.regions.table(_DATA).integer("total_ns") or 0

    def column(value: float) -> Int64Array:
        return np.array([int(value)], np.int64)

    table = CollectiveTable(
        call=np.zeros(1, np.int32),
        sequence=column(0),
        step=np.zeros(1, np.int32),
        start_ns=column(profile.run.gpu_first_ns or 0),
        duration_ns=column((own_ns - longest_ns)[is_repeated].sum()),
        exposed_ns=column(-1),
        compute_ns=column(own_ns[is_compute].sum()),
        copy_ns=column(own_ns[is_copy].sum()),
        data_ns=column(told),
        launches=column(count[is_compute].sum()),
    )
    first = int(found.calls.path[0])
    return CollectiveCallTable(["all"], ["collectives"], [""], column(-1), column(first)), table


def _with_groups(found: KernelCalls, on_gpu: SliceTable) -> tuple[tuple[CollectiveCallTable, Int32Array], Int64Array]:
    """Calls with a group each, the row of them for each collective's slice, and these slices by group and time.

    The communicator of a group has a stream of its own; ranks open them in the same order.
    """
    rows = np.flatnonzero(found.is_communication[on_gpu.node])
    rows = rows[np.argsort(on_gpu.start_ns[rows], kind="stable")]
    is_point = np.array([operation == POINT_TO_POINT for operation in found.calls.operation], np.bool_)
    rows = rows[~is_point[found.call[on_gpu.node[rows]]]]
    streams: dict[int, int] = {}
    keys: dict[tuple[int, int], int] = {}
    call_of = np.zeros(len(on_gpu), np.int32)
    for row, track, call in zip(
        rows.tolist(), on_gpu.track[rows].tolist(), found.call[on_gpu.node[rows]].tolist(), strict=True
    ):
        stream = -1 if found.has_group[call] else streams.setdefault(track, len(streams))
        call_of[row] = keys.setdefault((call, stream), len(keys))
    chosen = np.array([call for call, _ in keys], np.int64)
    calls = found.calls.take(chosen)
    groups = [name if stream < 0 else f"stream {stream}" for name, (_, stream) in zip(calls.group, keys, strict=True)]
    return (calls.replace(group=groups), call_of), rows


def _numbers(group: Names) -> Int64Array:
    """The how manieth of its group each one is, in order."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    place = np.arange(len(ordered))
    numbers = np.empty(len(ordered), np.int64)
    numbers[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return numbers


def steps_at(profile: Profile, time_ns: Int64Array) -> Int32Array:
    """The step of the program at each time; -1: not known: [n]."""
    times = step_times(profile)
    if times is None:
        return np.full(len(time_ns), -1, np.int32)
    steps: Int32Array = np.searchsorted(times.ends_ns, time_ns).astype(np.int32)
    return steps


def _launched_ns(profile: Profile, collectives: SliceTable) -> Int64Array:
    """When each was launched; where no call is recorded, when it began on the GPU."""
    slices = profile.slices
    is_launch = (profile.tracks.kind[slices.track] == TrackKind.HOST_THREAD) & (slices.correlation != 0)
    launches = slices.take(is_launch)
    if not len(launches):
        return collectives.start_ns
    order = np.argsort(launches.correlation, kind="stable")
    ids = launches.correlation[order]
    place = np.minimum(np.searchsorted(ids, collectives.correlation), len(ids) - 1)
    is_found = (ids[place] == collectives.correlation) & (collectives.correlation != 0)
    return np.where(is_found, launches.start_ns[order][place], collectives.start_ns)


def waits_for_data(profile: Profile) -> SliceTable:
    """Slices of loading data: regions of that name, and PyTorch's operator of the loop over a data loader."""
    frames = profile.tree.frames
    rows = zip(frames.kind.tolist(), frames.name, strict=True)
    is_data = np.array(
        [
            (kind == FrameKind.MARKER and name == _DATA) or name.startswith("enumerate(DataLoader)#")
            for kind, name in rows
        ],
        np.bool_,
    )
    on_host = profile.tracks.kind[profile.slices.track] != TrackKind.GPU_STREAM
    return profile.slices.take(is_data[profile.tree.frame[profile.slices.node]] & on_host)
