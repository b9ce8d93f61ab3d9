"""What NCCL said of its collectives and messages: `bragg run --nccl`.

`native/backends/nccl` writes it into META under `nccl`, summed up by communicator and kind of call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bragg.model.facts import Facts

OLDEST_NCCL = 22_700
"""The first NCCL that tells when channels begin and end, as `ncclGetVersion` counts."""
NCCL_OPERATIONS: Mapping[str, str] = {
    "AllReduce": "all-reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "AllToAll": "all-to-all",
    "AlltoAll": "all-to-all",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "Gather": "gather",
    "Scatter": "scatter",
    "Send": "send",
    "Recv": "receive",
}
_PARTS_OF_ALL_RANKS = ("ReduceScatter", "AlltoAll", "Scatter")  # NCCL counts one part
_BYTES = {
    "f64": 8,
    "i64": 8,
    "u64": 8,
    "f32": 4,
    "i32": 4,
    "u32": 4,
    "f16": 2,
    "bf16": 2,
    "i8": 1,
    "u8": 1,
    "f8e4m3": 1,
    "f8e5m2": 1,
}
_ADDED = ("calls", "timed", "gpu_ns")


@dataclass(frozen=True)
class NcclCall:
    """Equal calls in one communicator.

    Attributes:
        communicator: The program's name of the communicator, and its id, which all of its ranks share.
        group: PyTorch's name of the process group; without one as `communicator`.
        rank: In the communicator.
        n_ranks: Of the communicator.
        operation: What it does: `all-reduce`, `send`.
        count: Elements of the input of a rank, or of the message.
        dtype: Their type. All-gathers and broadcasts are counted in bytes: `i8`.
        size_bytes: The same in bytes; -1: not known.
        peer: The other rank of a message; None: it is a collective.
        algorithm: `RING`, `TREE`, `NVLS`, `CE` (copy engines); empty: not told.
        protocol: `LL`, `LL128`, `SIMPLE`; empty: not told.
        channels: Of the GPU, each a block of the kernel; 0: not told.
        calls: How many.
        timed: Those whose time on the GPU is known.
        gpu_ns: Time from the begin of the first to the end of the last channel, of all that are timed.
        least_ns: The shortest.
        most_ns: The longest.
        last_number: Of the last one: NCCL numbers the calls of an operation in a communicator from 0; None: not told.
    """

    communicator: str
    group: str
    rank: int
    n_ranks: int
    operation: str
    count: int
    dtype: str
    size_bytes: int
    peer: int | None
    algorithm: str
    protocol: str
    channels: int
    calls: int
    timed: int
    gpu_ns: int
    least_ns: int
    most_ns: int
    last_number: int | None = None

    @property
    def name(self) -> str:
        """`all-reduce[1024 f32, group 0 of 8], RING LL, 4 channels`."""
        peer = "" if self.peer is None else f" with rank {self.peer}"
        what = f"{self.operation}[{self.count} {self.dtype}, group {self.group} of {self.n_ranks}]{peer}"
        return ", ".join(filter(None, [what, self.way]))

    @property
    def way(self) -> str:
        """`RING LL, 4 channels`; empty: not told."""
        channels = f"{self.channels} channel{'s' if self.channels != 1 else ''}" if self.channels else ""
        return ", ".join(filter(None, [f"{self.algorithm} {self.protocol}".strip(), channels]))


@dataclass(frozen=True)
class Nccl:
    """All that was told.

    Attributes:
        interface: Version of the profiler interface; 0: NCCL has not loaded the plug-in.
        version: Of NCCL, as `ncclGetVersion` counts; 0: not known.
        calls: Of all communicators.
        lost_calls: Calls that are not among them, because there were too many kinds.
    """

    interface: int
    version: int
    calls: tuple[NcclCall, ...]
    lost_calls: int


def nccl_version_text(version: int) -> str:
    """`2.28.9` of 22809."""
    return f"{version // 10_000}.{version // 100 % 100}.{version % 100}"


def nccl_of(meta: Mapping[str, Any]) -> Nccl | None:
    """What `Profile.meta` tells; None: it was not asked for."""
    facts = Facts(meta)
    if not facts.is_table("nccl"):
        return None
    told = facts.table("nccl")
    return Nccl(
        interface=told.count("interface"),
        version=told.count("version"),
        calls=tuple(
            _call(communicator, Facts(call))
            for communicator in map(Facts, told.rows("communicators"))
            for call in communicator.rows("calls")
        ),
        lost_calls=told.count("lost_calls"),
    )


def united_nccl(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """META's `nccl` of two consecutive phases of one session, as one."""
    tables: dict[str, dict[str, Any]] = {}
    for phase in (one, other):
        for communicator in map(Facts, Facts(phase).rows("communicators")):
            known = tables.setdefault(communicator.text("group"), {**communicator.values(), "calls": []})
            for call in communicator.rows("calls"):
                _add(known["calls"], dict(call))
    return {**one, **other, "communicators": list(tables.values())}


def _add(calls: list[dict[str, Any]], added: dict[str, Any]) -> None:
    of_sums = {*_ADDED, "least_ns", "most_ns", "last_sequence"}
    kind = {name: value for name, value in added.items() if name not in of_sums}
    same = next((call for call in calls if kind == {name: call[name] for name in call if name not in of_sums}), None)
    if same is None:
        calls.append(added)
        return
    both = [Facts(same), Facts(added)]
    timed = [each for each in both if each.count("timed")]
    same |= {name: sum(each.count(name) for each in both) for name in _ADDED}
    if timed:
        same["least_ns"] = min(each.count("least_ns") for each in timed)
        same["most_ns"] = max(each.count("most_ns") for each in timed)
    if "last_sequence" in added:
        same["last_sequence"] = added["last_sequence"]


def _call(communicator: Facts, call: Facts) -> NcclCall:
    function, dtype = call.text("function"), call.text("dtype")
    n_ranks = communicator.count("n_ranks")
    count = call.count("count") * (n_ranks if function in _PARTS_OF_ALL_RANKS else 1)
    return NcclCall(
        communicator=communicator.text("group"),
        group=communicator.text("torch_group") or communicator.text("group"),
        rank=communicator.count("rank"),
        n_ranks=n_ranks,
        operation=NCCL_OPERATIONS.get(function, function),
        count=count,
        dtype=dtype,
        size_bytes=count * _BYTES[dtype] if dtype in _BYTES else -1,
        peer=call.integer("peer") if function in ("Send", "Recv") else None,
        algorithm=call.text("algorithm"),
        protocol=call.text("protocol"),
        channels=call.count("channels"),
        calls=call.count("calls"),
        timed=call.count("timed"),
        gpu_ns=call.count("gpu_ns"),
        least_ns=call.count("least_ns"),
        most_ns=call.count("most_ns"),
        last_number=call.integer("last_sequence"),
    )
