"""This rank's clock beside that of rank 0, so that the ranks of several hosts can be put on one timeline.

Rank 0 answers on a UDP port, whose address it leaves in the store that the ranks have met at. The others ask as NTP
does: when they meet, before they part, and at the end. Ranks of one boot of one host have one clock and ask nothing.

Messages, little-endian: u64 token, i64 asked_ns (by the asker); an answer adds i64 received_ns, i64 answered_ns (by
rank 0). Arrival is stamped by the kernel, so a thread that waits for the GIL makes no error.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress

from bragg.core import core
from bragg.record.inside.metadata import tell_at_stop
from bragg.record.inside.rank import boot_id
from bragg.record.inside.threads import begin_own_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


KEY = "bragg/clock"
_REQUEST, _ANSWER = struct.Struct("<Qq"), struct.Struct("<Qqqq")
_STAMPS = getattr(socket, "SO_TIMESTAMPNS", 35)  # of Linux on x86 and ARM
_STAMP = struct.Struct("@qq")
_ROUNDS = 16  # the fastest counts; each takes 0.1 ms within a data centre
_ROUND_S, _ALL_S = 0.05, 0.2
_FIND_S, _FIND_POLL_S = 0.5, 0.02  # rank 0 leaves its address as soon as it has met the others

_exchanges: list[tuple[int, int, int]] = []
_asked: list[str] = []  # address of rank 0
_served: list[str] = []  # the same, in rank 0


def meet(rank: int, publish: Callable[[str], object], find: Callable[[], str | None]) -> None:
    """Note the clock of rank 0, once the ranks have met.

    Args:
        rank: Of this process.
        publish: Leaves a text where the other ranks find it.
        find: That text; None: it is not there yet. Does not wait.
    """
    if rank == 0:
        if not _served:
            _served.append(serve())
        publish(f"{_served[0]} {boot_id()}")
        return
    deadline = time.monotonic() + _FIND_S
    while (found := find()) is None and time.monotonic() < deadline:
        time.sleep(_FIND_POLL_S)
    address, _, boot = (found or "").rpartition(" ")
    if not address or boot == boot_id() != "" or (resolved := _resolved(address)) is None:
        return
    _asked[:] = [resolved]
    pid = os.getpid()
    tell_at_stop("clock_exchanges", lambda is_end: _asked_again(is_end=is_end and os.getpid() == pid))
    part()


def _resolved(address: str) -> str | None:
    """The address with the number of the host; None: the resolver, which knows no deadline, does not answer in time."""
    host, _, rest = address.partition(":")
    found: list[str] = []

    def resolve() -> None:
        with suppress(OSError):
            found.append(socket.gethostbyname(host))

    begin_own_thread(resolve, "bragg resolver").join(_FIND_S)
    return f"{found[0]}:{rest}" if found else None


def part(*_: object) -> None:
    """Ask once more, while rank 0 is still there."""
    if _asked and (found := ask(_asked[0])) is not None:
        _exchanges.append(found)


def _asked_again(*, is_end: bool) -> list[tuple[int, int, int]]:
    if is_end:
        part()
    return list(_exchanges)


def serve() -> str:
    """Answer on a thread of this process, until it ends; returns the address, with a token that questions need."""
    answering = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    answering.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
    answering.bind(("", 0))
    token = int.from_bytes(os.urandom(8), "little")

    def answer() -> None:
        while True:
            data, received_ns, sender = _received(answering)
            if len(data) == _REQUEST.size and _REQUEST.unpack(data)[0] == token:
                asked_ns = _REQUEST.unpack(data)[1]
                with suppress(OSError):  # who asked may be gone
                    answering.sendto(_ANSWER.pack(token, asked_ns, received_ns, core.now_ns()), sender)

    begin_own_thread(answer, "bragg rank clock")
    host = os.environ.get("MASTER_ADDR") or socket.gethostname()
    return f"{host}:{answering.getsockname()[1]}:{token}"


def ask(address: str) -> tuple[int, int, int] | None:
    """Ask what time it is at an address, whose host is a number: a name may take long.

    Returns:
        This process's time, what the other clock is ahead of it, and the time on the way there and back, in ns: the
        offset is wrong by half of that at most. None: nobody answers.
    """
    host, port, token = address.rsplit(":", 2)
    best: tuple[int, int, int] | None = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
        asking.settimeout(_ROUND_S)
        try:
            asking.connect((host, int(port)))
        except OSError:
            return None
        deadline = time.monotonic() + _ALL_S
        for _ in range(_ROUNDS):
            if time.monotonic() > deadline:
                break
            found = _round(asking, int(token))
            if found is not None and (best is None or found[2] < best[2]):
                best = found
    return best


def _round(asking: socket.socket, token: int) -> tuple[int, int, int] | None:
    sent_ns = core.now_ns()
    try:
        asking.send(_REQUEST.pack(token, sent_ns))
        data, back_ns, _ = _received(asking)
    except OSError:  # Late, or nobody is there.
        return None
    if len(data) != _ANSWER.size or _ANSWER.unpack(data)[:2] != (token, sent_ns):
        return None
    received_ns, answered_ns = _ANSWER.unpack(data)[2:]
    way_ns = (back_ns - sent_ns) - (answered_ns - received_ns)
    return back_ns, ((received_ns - sent_ns) + (answered_ns - back_ns)) // 2, max(way_ns, 0)


def _received(where: socket.socket) -> tuple[bytes, int, tuple[str, int]]:
    """A message, when the kernel got it by the recorder's clock, and who sent it."""
    data, extra, _, sender = where.recvmsg(64, socket.CMSG_SPACE(_STAMP.size))
    now_ns, ahead_ns = core.now_ns(), time.time_ns() - core.now_ns()
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == _STAMPS and len(content) >= _STAMP.size:
            seconds, rest_ns = _STAMP.unpack(content[: _STAMP.size])
            return data, min(int(seconds) * 1_000_000_000 + int(rest_ns) - ahead_ns, now_ns), sender
    return data, now_ns, sender
