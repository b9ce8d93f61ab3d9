"""Idle time of GPUs that the recorder has added up: why they waited and for which code, over time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bragg.model.table import FloatArray, Int32Array, Int64Array, Table


class IdleKind(IntEnum):
    """Why a GPU waited; of pauses under 3 us the short ones.

    `QUEUED` is a start right after its launch; in recordings that know none of the last four, all from launch to start.
    """

    LATE = 0
    QUEUED = 1
    NOT_KNOWN = 2
    SHORT_LATE = 3
    SHORT_QUEUED = 4
    SHORT_NOT_KNOWN = 5
    WAITED = 6
    FULL_QUEUE = 7
    SHORT_WAITED = 8
    SHORT_FULL_QUEUE = 9


@dataclass(frozen=True, eq=False)
class IdleTable(Table):
    """Parts of pauses, between the first and the last work of a device.

    Attributes:
        process: Which of the recorded processes, from 0; each has devices of its own.
        device: Its ordinal.
        kind: An `IdleKind`.
        node: What the device waited for; the root if nobody is to blame.
        start_ns: Of the bin, CLOCK_REALTIME.
        bin_ns: Its width.
        count: Pauses that ended in the bin and had their largest part here.
        idle_ns: Time within the bin.
        longest_ns: Largest part of one pause that ended in the bin.
    """

    process: Int32Array
    device: Int32Array
    kind: Int32Array
    node: Int32Array
    start_ns: Int64Array
    bin_ns: Int64Array
    count: Int64Array
    idle_ns: Int64Array
    longest_ns: Int64Array

    def of_known_kinds(self) -> IdleTable:
        """The rows with `NOT_KNOWN` for kinds that a newer version tells apart."""
        return self.replace(kind=np.where(self.kind <= max(IdleKind), self.kind, IdleKind.NOT_KNOWN).astype(np.int32))

    def moved(self, target: NDArray[np.int32]) -> IdleTable:
        """The rows over other nodes; of those that have none (-1) the time is nobody's.

        Args:
            target: int32 [n_nodes before]: the new node.
        """
        return self.replace(node=np.maximum(target[self.node], 0))

    def shares(self, start_ns: int, end_ns: int) -> FloatArray:
        """The part of each row's bin that lies between two times: [n_rows], 0 to 1."""
        begins, ends = np.maximum(self.start_ns, start_ns), np.minimum(self.start_ns + self.bin_ns, end_ns)
        share: FloatArray = np.maximum(ends - begins, 0) / np.maximum(self.bin_ns, 1)
        return share
