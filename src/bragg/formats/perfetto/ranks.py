"""One Perfetto trace of several ranks: each is a process named by its rank, in the order of the ranks.

Packets are compressed in pieces, as Perfetto's own recorder does; they shrink to about a fifth. Tracks are numbered
`hash64(run, rank, track)` and sequences `rank * 256 + track + 1`, so that files of single ranks can be put behind one
another. Collectives are numbered by run, group and sequence, for the same reason. Each packet sequence has its own
clock, tied to the real time of its host by one packet.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bragg.formats.encodings.protobuf import message
from bragg.formats.files import new_file
from bragg.formats.perfetto.collectives import Links
from bragg.formats.perfetto.fields import COMPRESSED, PACKET, REALTIME
from bragg.formats.perfetto.trace import Placement, TrackIds, packets
from bragg.model import Profile
from bragg.model.ranks.job import Rank
from bragg.model.ranks.summary import CollectiveSlices

_TRACKS_A_RANK = 256
# Sequences of ranks with more tracks lie above those of all others.
_MORE, _MORE_A_RANK = 1 << 31, 4096
_LEVEL = 1  # 8 ranks of 100,000 slices: 0.1 s; level 6 takes 0.4 s for a tenth less
_PIECE_BYTES = 1 << 20
_FLOWS_A_RANK = 1 << 32


class RankIds(TrackIds):
    """Numbers that are unique in a job.

    Args:
        run_id: What the launcher calls the run.
        rank: The rank's number.
        collectives: Finds the slices that are linked with those of other ranks; None: none are.
    """

    def __init__(
        self, run_id: str, rank: int, collectives: Callable[[Profile], CollectiveSlices] | None = None
    ) -> None:
        super().__init__()
        self._run_id, self._rank, self._collectives = run_id, rank, collectives
        self._n_sequences = 0

    def track(self) -> int:
        """A hash of run, rank and the number of the track."""
        named = f"{self._run_id}/{self._rank}/{super().track()}".encode()
        return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little") or 1

    def sequence(self, track: int) -> int:
        """The next one of the rank."""
        self._n_sequences += 1
        if self._n_sequences <= _TRACKS_A_RANK:
            return self._rank * _TRACKS_A_RANK + self._n_sequences
        return _MORE + self._rank * _MORE_A_RANK + self._n_sequences

    def links(self, profile: Profile) -> Links | None:
        """Collectives, by numbers that are the same on every rank."""
        if self._collectives is None:
            return None
        found = self._collectives(profile)
        return Links(found, [self._first_work(group) for group in found.groups], len(profile.slices))

    def _first_work(self, group: str) -> int:
        """Number of a group's first collective: above those of all arrows."""
        named = f"{self._run_id}/collectives/{group}".encode()
        high = int.from_bytes(hashlib.blake2b(named, digest_size=4).digest(), "little")
        return (high | 1 << 31) << 32


def write_ranks(
    ranks: Iterable[tuple[Rank, Profile]],
    path: Path,
    run_id: str,
    hosts: Sequence[str],
    collectives: Callable[[Profile], CollectiveSlices] | None = None,
    *,
    has_stages: bool = False,
) -> None:
    """Write the timelines of ranks.

    Args:
        ranks: Each with its profile, which has slices; only one at a time is held.
        path: The file.
        run_id: What the launcher calls the run.
        hosts: Names of all machines.
        collectives: Finds the slices that are linked with those of the other ranks; None: none are.
        has_stages: Whether GPU work is written as stages of GPUs, too.

    Raises:
        BadFile: The file cannot be written.
    """
    taken: set[int] = set()
    with new_file(path) as file:
        for rank, profile in ranks:
            place = Placement(
                clock=REALTIME,
                machine=hosts.index(rank.host) + 1 if len(hosts) > 1 and rank.host in hosts else 0,
                first_flow=rank.rank * _FLOWS_A_RANK + 1,
                process=_free(rank.pid or rank.rank + 1, taken),
                name=rank.label,
                labels=(*filter(None, [rank.host]), *rank.gpus),
                order=rank.rank,
                has_stages=has_stages,
            )
            for piece in _pieces(packets(profile, RankIds(run_id, rank.rank, collectives), place)):
                file.write(message(PACKET, message(COMPRESSED, zlib.compress(piece, _LEVEL))))


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth compressing."""
    waiting: list[bytes] = []
    size_bytes = 0
    for part in parts:
        waiting.append(part)
        size_bytes += len(part)
        if size_bytes >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield b"".join(waiting)


def _free(process: int, taken: set[int]) -> int:
    """A process id that no other rank has: those of several hosts may be equal."""
    found = process if process not in taken else max(taken) + 1
    taken.add(found)
    return found
