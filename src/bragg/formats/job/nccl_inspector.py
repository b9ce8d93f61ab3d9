"""Reading what NCCL's Inspector writes: a JSON object for each collective of a process, one behind another.

    header      id of the communicator, rank in it, n_ranks
    metadata    hostname, pid, dump_timestamp_us: when the object was written
    coll_perf   coll, coll_sn, coll_msg_size_bytes, coll_exec_time_us; verbose also event_trace_ts

The time of a collective begins when the kernel of this rank does, so the last rank has the shortest, as in a timeline.
Source: NVIDIA/nccl, ext-profiler/inspector/README.md, format v4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bragg.errors import BadFile
from bragg.formats.files import open_content
from bragg.formats.format import damaged
from bragg.model.facts import Facts
from bragg.model.meta.nccl import NCCL_OPERATIONS
from bragg.model.ranks.summary import CollectiveCallTable, CollectiveTable, PathTable, RankSummary

_BEGIN = b'{"header"'
_N_FIRST_BYTES = 64
_POINT_TO_POINT = ("Send", "Recv", "SendRecv")


def read_inspector(path: Path) -> RankSummary | None:
    """The collectives of a process; None: the file is of another kind.

    The rank is that in the largest communicator. The last object may break off, as a killed process leaves it.

    Raises:
        BadFile: It is damaged, or the process had several GPUs, each a rank.
    """
    with open_content(path) as file:
        start = file.read(_N_FIRST_BYTES)
        if not b"".join(start.split()).startswith(_BEGIN):
            return None  # other traces may be larger than memory
        content = start + file.read()
    objects = list(_objects(content.decode(errors="replace"), path))
    if not objects:
        raise damaged(path, ValueError("it breaks off in its first object"), "Record it again")
    headers = [each.table("header") for each in objects]
    ranks = {(header.text("id"), header.integer("rank")) for header in headers}
    if len(ranks) > len({name for name, _ in ranks}):
        raise BadFile(f"{path} is of a process with several ranks", hint="Record with one process for each GPU")
    world = max(headers, key=lambda header: header.count("n_ranks"))
    try:
        calls, table = _tables(objects)
    except OverflowError as error:  # of a column, or of a time that is infinite
        raise damaged(path, error, "Record it again") from error
    is_known = len(table) > 0
    wall_ns = int((table.start_ns + table.duration_ns).max() - table.start_ns.min()) if is_known else 0
    return RankSummary(
        rank=world.count("rank"),
        host=objects[0].table("metadata").text("hostname"),
        device="",
        wall_ns=wall_ns,
        is_whole=is_known,
        is_cut_short=False,
        calls=calls,
        collectives=lambda: table,
        paths=PathTable.empty,
        labels=list,
    )


def _objects(text: str, path: Path) -> Iterator[Facts]:
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise damaged(path, error, "Record it again") from error
        except ValueError as error:
            if "\n{" in text[at + 1 :]:
                raise damaged(path, error, "Record it again") from error
            return
        yield Facts(value)


def _tables(objects: list[Facts]) -> tuple[CollectiveCallTable, CollectiveTable]:
    keys: dict[tuple[str, str, int], int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for each in objects:
        header, told = each.table("header"), each.table("coll_perf")
        name, number = told.text("coll"), told.integer("coll_sn")
        if number is None or number < 0 or name in _POINT_TO_POINT:
            continue
        size_bytes = told.count("coll_msg_size_bytes")
        if name == "ReduceScatter":  # whose size is that of a rank's output
            size_bytes *= max(header.count("n_ranks"), 1)
        key = header.text("id"), NCCL_OPERATIONS.get(name, name), size_bytes or -1
        took_ns = round(told.number("coll_exec_time_us") * 1000)
        end_ns = _end_us(each) * 1000
        rows.append((keys.setdefault(key, len(keys)), number, end_ns - took_ns, took_ns))
    call, sequence, start_ns, duration_ns = np.array(rows, np.int64).reshape(-1, 4).T
    nothing: Any = np.zeros(len(rows), np.int64)
    table = CollectiveTable(
        call=call.astype(np.int32),
        sequence=sequence,
        step=np.full(len(rows), -1, np.int32),
        start_ns=start_ns,
        duration_ns=duration_ns,
        exposed_ns=np.full(len(rows), -1, np.int64),
        compute_ns=nothing,
        copy_ns=nothing,
        data_ns=nothing,
        launches=nothing,
    )
    calls = CollectiveCallTable(
        group=[group for group, _, _ in keys],
        operation=[operation for _, operation, _ in keys],
        dtype=[""] * len(keys),
        size_bytes=np.array([size for _, _, size in keys], np.int64),
        path=np.zeros(len(keys), np.int64),
    )
    return calls, table


def _end_us(each: Facts) -> int:
    """When the last channel of the kernel ended; without a verbose trace when the object was written."""
    channels = each.table("coll_perf").table("event_trace_ts").rows("kernel_events")
    ends = [Facts(channel).count("kernel_stop_ts") for channel in channels]
    return max(ends, default=0) or each.table("metadata").count("dump_timestamp_us")
