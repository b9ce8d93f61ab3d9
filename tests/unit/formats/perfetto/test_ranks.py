from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

from bragg.analyze.ranks.collectives import collective_slices
from bragg.formats.encodings.protobuf import fields
from bragg.formats.perfetto.ranks import RankIds, write_ranks
from bragg.model import Profile
from bragg.model.ranks.job import Rank
from tests.support.traces import trace_from_text

_SEQUENCE, _DESCRIPTOR, _COMPRESSED, _MACHINE = 10, 60, 50, 98
_UUID = 1
_EVENT, _FLOW, _SAME_WORK = 11, 47, 52

TRACE = trace_from_text("""
    thread 7
      1000-9000 step
      1100-1150 cuLaunchKernel ->1
    stream 13
      1300-1500 matmul <-1""")


def packets_of(path: Path) -> list[dict[int, int | bytes]]:
    """The fields of every packet, unpacked."""
    found = []
    for _, piece in fields(path.read_bytes()):
        assert isinstance(piece, bytes)
        ((number, content),) = fields(piece)
        assert (number, type(content)) == (_COMPRESSED, bytes)
        for _, packet in fields(zlib.decompress(content)):  # type: ignore[arg-type]
            found.append(dict(fields(packet)))  # type: ignore[arg-type]
    return found


def written(tmp_path: Path, *hosts: str) -> list[dict[int, int | bytes]]:
    profile = replace(TRACE, meta={"pid": 42})
    ranks: list[tuple[Rank, Profile]] = [
        (Rank(n, tmp_path, host=host, pid=42), profile) for n, host in enumerate(hosts)
    ]
    write_ranks(ranks, tmp_path / "trace", "run", list(dict.fromkeys(hosts)))
    return packets_of(tmp_path / "trace")


def test_sequences_are_numbered_by_rank_and_track(tmp_path: Path) -> None:
    packets = written(tmp_path, "n1", "n1", "n1")
    assert {packet[_SEQUENCE] for packet in packets if _SEQUENCE in packet} == {1, 2, 257, 258, 513, 514}


def test_tracks_of_all_ranks_are_different(tmp_path: Path) -> None:
    packets = written(tmp_path, "n1", "n1")
    descriptors = [dict(fields(packet[_DESCRIPTOR])) for packet in packets if _DESCRIPTOR in packet]  # type: ignore[arg-type]
    uuids = [descriptor[_UUID] for descriptor in descriptors]
    assert len(set(uuids)) == len(uuids) == 2 * 4  # a process, a device and two tracks each


def test_machines_are_told_where_there_are_several(tmp_path: Path) -> None:
    assert {packet.get(_MACHINE) for packet in written(tmp_path, "n1", "n1")} == {None}
    assert {packet.get(_MACHINE) for packet in written(tmp_path, "n1", "n2")} == {1, 2}


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"


def flows_of(packets: list[dict[int, int | bytes]]) -> dict[int, list[dict[int, int | bytes]]]:
    """The events of each rank that arrows leave, by rank."""
    found: dict[int, list[dict[int, int | bytes]]] = {}
    for packet in packets:
        event = dict(fields(packet[_EVENT])) if isinstance(packet.get(_EVENT), bytes) else {}  # type: ignore[arg-type]
        if _SAME_WORK in event:
            found.setdefault(int(packet[_SEQUENCE]) // 256, []).append(event)
    return found


def test_collectives_of_all_ranks_are_linked_by_group_and_sequence(tmp_path: Path) -> None:
    def rank(number: int) -> tuple[Rank, Profile]:
        trace = trace_from_text(f"""
            thread 7
              {100 * number}-9000 step
              {1000 + number}-{1100 + number} cuLaunchKernel ->1
            stream 13
              {1300 + number}-1500 {NCCL} <-1
              {1600 + number}-1700 matmul
              {1800 - number}-1900 {NCCL}""")
        return Rank(number, tmp_path, host="n1", pid=42 + number), replace(trace, meta={"pid": 42 + number})

    write_ranks([rank(0), rank(1)], tmp_path / "trace", "run", ["n1"], collective_slices)
    linked = flows_of(packets_of(tmp_path / "trace"))
    works = {number: [event[_SAME_WORK] for event in events] for number, events in linked.items()}
    assert works[0] == works[1]
    assert len(set(works[0])) == 2
    for number in range(2):
        assert [int.from_bytes(event[_FLOW], "little") for event in linked[number]] == works[number]  # type: ignore[arg-type]
    write_ranks([rank(0), rank(1)], tmp_path / "trace", "other run", ["n1"], collective_slices)
    assert not set(works[0]) & {event[_SAME_WORK] for event in flows_of(packets_of(tmp_path / "trace"))[0]}


def test_numbers_do_not_depend_on_other_ranks_and_never_meet() -> None:
    assert RankIds("run", 3).track() == RankIds("run", 3).track() != RankIds("other", 3).track()
    numbers = [ids.sequence(0) for ids in (RankIds("run", rank) for rank in range(20)) for _ in range(1000)]
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0
    assert max(numbers) < 1 << 32
