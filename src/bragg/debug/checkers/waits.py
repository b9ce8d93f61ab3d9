"""Shared memory and accumulators of Gluon kernels that are used before what runs beside them was waited for."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.flow.jitted import is_gluon
from bragg.debug.gluon.asynchrony import Asynchrony, Flight
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners, machine
from bragg.debug.values import IN_FLIGHT
from bragg.model import Severity
from bragg.model.table import Array

_HINTS = {
    "copy": "Make the copies a group with commit_group() and wait for it with wait_group(n)",
    "load": "Wait for the barrier that was given to the copy, with the parity of its phase: mbarrier.wait(bar, phase)",
    "store": "Wait with tma.store_wait(pendings=n) before",
    "product": "Wait with warpgroup_mma_wait(num_outstanding=n, deps=[acc]), and use what it returns",
    "tensor product": "Commit with tcgen05_commit(bar), and wait for the barrier: mbarrier.wait(bar, phase)",
}
_NAMES = {
    "copy": "a copy by async_copy",
    "load": "a load by TMA",
    "store": "a store by TMA",
    "product": "a product by warpgroup_mma",
    "tensor product": "a product by tcgen05_mma",
}


def _watch(record: LaunchFindings) -> Listeners:
    if not is_gluon(record.launch.jitted):
        return Listeners()

    def tell(what: str, flight: Flight, rows: Array) -> None:
        now = machine()
        where = np.isin(now.rows, rows).reshape(-1, 1)
        message = f"shared memory is {what}: {_NAMES[flight.kind]}"
        record.at_line(message, _HINTS[flight.kind], Severity.ERROR, where, started_at=flight.place)

    def tell_use(_use: str, taint: Array, bit: int, _buffer: Buffer | None) -> None:
        flight = tracker.last_product()
        if bit == IN_FLIGHT and flight is not None:
            record.at_line(
                "the accumulator of warpgroup_mma is used before the product was waited for",
                _HINTS["product"],
                Severity.ERROR,
                (taint & bit) != 0,
                started_at=flight.place,
            )

    def finish() -> None:
        for flight in tracker.unfinished_stores():
            record.at_source(
                *flight.place,
                "the kernel ends before a store by TMA was waited for: its shared memory may be gone",
                _HINTS["store"],
                Severity.ERROR,
            )

    tracker = Asynchrony(tell)
    return Listeners(asynchronous=[tracker], tainted=[tell_use], end=[finish])


WAITS = Checker("missing-wait", "copies and products of Gluon kernels that are not waited for", True, _watch)
