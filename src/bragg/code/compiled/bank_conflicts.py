"""Bank conflicts of a kernel, from the layouts of its tiles in registers and in shared memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bragg.code.compiled.operations import Module, place_of_chain
from bragg.code.compiled.shared_accesses import shared_accesses, ways_of
from bragg.model.kernels.compiled import BankConflict


def bank_conflicts(text: str, module: Module) -> Iterator[BankConflict]:
    """Accesses of shared memory for which lanes of a warp meet in one bank.

    Args:
        text: Of TTGIR.
        module: The same, read.
    """
    by_row = {operation.row: operation for operation in module.operations}
    for access in shared_accesses(text):
        operation, ways = by_row.get(access.row), ways_of(access)
        if operation is not None and ways is not None and ways > 1:
            yield BankConflict(
                place_of_chain(operation.chain),
                access.kind == "write",
                operation.depth > 0,
                math.prod(access.shape),
                access.element_bits // 8,
                ways,
            )
