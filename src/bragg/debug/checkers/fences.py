"""Shared memory of Gluon kernels that a copy or product reads without a fence after the kernel has written it."""

from __future__ import annotations

import numpy as np

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.flow.jitted import is_gluon
from bragg.debug.gluon.fences import Fences
from bragg.debug.gluon.tracker import STARTED
from bragg.debug.state import Listeners, machine
from bragg.model import Severity
from bragg.model.table import Array

_HINT = "Call fence_async_shared() between the write and what reads it"


def _watch(record: LaunchFindings) -> Listeners:
    if not is_gluon(record.launch.jitted):
        return Listeners()

    def tell(kind: str, place: tuple[str, int], rows: Array) -> None:
        where = np.isin(machine().rows, rows).reshape(-1, 1)
        message = f"shared memory is read{STARTED[kind]} without a fence since the kernel has written it"
        record.at_line(message, _HINT, Severity.ERROR, where, started_at=place, role="written at")

    return Listeners(asynchronous=[Fences(tell)])


FENCES = Checker("missing-fence", "writes that copies and products of Gluon kernels may not see", True, _watch)
