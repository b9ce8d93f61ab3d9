"""Traces as THAPI's iprof writes them, in its present layout of tracks and in that of before."""

from __future__ import annotations

from bragg.formats.encodings.protobuf import message, number, text

EPOCH_NS = 1_790_000_000_000_000_000
_SEQUENCE = 88
# Of a thread: begin and length in ns, name. A call that others lie in, an empty one, and one that follows at once.
CALLS = [
    (100, 500, "cuLaunchKernel"),
    (150, 20, "inner"),
    (600, 50, "cuMemcpyHtoDAsync_v2"),
    (680, 0, "empty"),
    (700, 100, "MPI_Allreduce"),
]
WORK = [(120, 300, "matmul"), (610, 40, "cuMemcpyHtoDAsync_v2")]


def iprof_trace(hosts: tuple[str, ...] = ("x1",), *, is_old: bool = False) -> bytes:
    """A process with a thread and a device on each host."""
    packets: list[bytes] = []
    for row, host in enumerate(hosts):
        first = 100 * row + 1
        thread, device = (_old_tracks if is_old else _new_tracks)(packets, host, first, 4000 + row)
        _slices(packets, thread, CALLS, is_old=is_old)
        _slices(packets, device, WORK, is_old=is_old)
    return b"".join(message(1, packet) for packet in packets)


def _new_tracks(packets: list[bytes], host: str, first: int, pid: int) -> tuple[int, int]:
    names = [f"Hostname {host}", f"Process {pid}", f"Thread {pid + 1}", "Device 0", "SubDevice 1"]
    for row, name in enumerate(names):
        parent = number(5, first + row - 1) if row else b""
        packets.append(message(60, number(1, first + row), text(2, name), parent))
    return first + 2, first + 4


def _old_tracks(packets: list[bytes], host: str, first: int, pid: int) -> tuple[int, int]:
    for row, name in (
        (0, f"Hostname {host} | Process {pid} | uuid "),
        (2, f"Hostname {host} | Process {pid} | Device 0"),
    ):
        process = message(3, number(1, first + row), text(6, name))
        packets.append(message(60, number(1, first + row), process))
    thread = message(4, number(1, first), number(2, pid + 1), text(5, "Thread "))
    packets.append(message(60, number(1, first + 1), number(5, first), thread))
    packets.append(message(60, number(1, first + 3), number(5, first + 2), text(2, f"Thread {pid + 1}")))
    return first + 1, first + 3


def _slices(packets: list[bytes], track: int, slices: list[tuple[int, int, str]], *, is_old: bool) -> None:
    """Ends follow when the next slice begins, so times are out of order, as iprof leaves them."""
    ends: list[int] = []
    for row, (begin, lasts, name) in enumerate(slices):
        told = text(23, name) if is_old or len(name) <= 8 else number(10, row + 1)
        interned = b"" if is_old else message(12, message(2, number(1, row + 1), text(2, name)))
        cleared = number(13, 3 if not row else 2)
        event = message(11, number(9, 1), number(11, track), told)
        packets.append(number(8, EPOCH_NS + begin) + number(10, _SEQUENCE) + cleared + interned + event)
        while ends and ends[-1] <= begin:
            packets.append(_end(track, ends.pop()))
        ends.append(begin + lasts)
    while ends:
        packets.append(_end(track, ends.pop()))


def _end(track: int, at: int) -> bytes:
    return number(8, EPOCH_NS + at) + number(10, _SEQUENCE) + message(11, number(9, 2), number(11, track))
