"""What a Gluon kernel tells those who keep account of its shared memory; by itself it makes nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bragg.model.table import Array

if TYPE_CHECKING:
    from bragg.debug.gluon.shared_memory import SharedMemory
    from bragg.debug.state import Machine

# By what a kind of copy or product reads and writes; empty: the kernel itself.
STARTED = {
    "": "",
    "copy": " by async_copy",
    "load": " by TMA",
    "store": " by TMA",
    "product": " by warpgroup_mma",
    "tensor product": " by tcgen05",
}


@dataclass(frozen=True)
class AsyncWork:
    """A copy or product that a GPU carries out beside the kernel.

    Attributes:
        kind: `copy`, `load`, `store`, `product`, `tensor product`: how it is waited for.
        chosen: bool [active]: the programs that begin it.
        writes: What it writes; None: no shared memory.
        reads: What it reads; only what is shared memory counts.
        barrier: That it completes; None: none.
    """

    kind: str
    chosen: Array
    writes: SharedMemory | None = None
    reads: tuple[Any, ...] = ()
    barrier: SharedMemory | None = None


class Tracker:
    """One that keeps account."""

    def started(self, work: AsyncWork) -> None:
        """A copy or product begins."""

    def read(self, memory: SharedMemory) -> None:
        """The kernel itself reads shared memory."""

    def written(self, memory: SharedMemory, chosen: Array) -> None:
        """The kernel itself writes shared memory, in the active programs that are `chosen`: bool [active]."""

    def fenced(self) -> None:
        """What the kernel itself has written can be seen by copies and products that begin later."""

    def committed(self, barrier: SharedMemory | None = None) -> None:
        """The copies that were started make a group; or those that are open complete a barrier."""

    def committed_products(self, barrier: SharedMemory) -> None:
        """Tensor products that were started complete a barrier."""

    def waited_for(self, what: str, left: int) -> None:
        """All but the last few `groups` of copies, `stores` or `products` are over, in the active programs."""

    def initialised(self, memory: Any, offsets: Array) -> None:
        """Barriers, the elements int64 [programs] of an allocation, begin phase 0."""

    def arrived(self, memory: Any, rows: Array, offsets: Array, is_over: Array) -> None:
        """Programs have arrived at a barrier, or bytes have come.

        Args:
            memory: The barriers.
            rows: intp [arriving]: positions of the programs in the batch.
            offsets: int64 [arriving]: which barrier.
            is_over: bool [arriving]: this has completed a phase.
        """

    def waited(self, memory: Any, rows: Array, offsets: Array, parity: Array) -> None:
        """A wait for a barrier is over: what its completed phases stand for is, too.

        Args:
            memory: The barriers.
            rows: intp [waiting]: positions of the programs in the batch.
            offsets: int64 [waiting]: which barrier each of them waited for.
            parity: int [waiting]: of the phase that each of them waited for.
        """

    def split(self, partitions: Sequence[Machine], names: Sequence[str]) -> None:
        """The current programs go on as several partitions; names: of their functions."""

    def joined(self, partitions: Sequence[Machine]) -> None:
        """All partitions have ended."""
