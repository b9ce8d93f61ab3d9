"""What statements of a kernel do beside computing: they print, and assert."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, RuntimeFault, StaticAssertion
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.comparisons import constant_mask
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.promotion import is_number
from bragg.debug.numbers.shapes import broadcast_pair
from bragg.debug.state import machine
from bragg.debug.texts.shown import array_text
from bragg.debug.values import Pointer, Tensor


def asserted(condition: Any, message: Any = "", mask: Any = None) -> None:
    """Raise a fault when the condition fails for a program.

    Raises:
        KernelFault: It fails; the message names a program.
    """
    test = (
        cast(as_tensor(condition), DTYPES["int1"]) if not is_number(condition) else constant_mask((), bool(condition))
    )
    fails = ~test.data
    if mask is not None:
        test, lanes = broadcast_pair(test, as_tensor(mask))
        fails = ~test.data & lanes.data
    if fails.any():
        row = int(np.flatnonzero(fails.reshape(len(fails), -1).any(axis=1))[0])
        now = machine()
        place = tuple(int(now.program_ids(axis)[row]) for axis in range(3))
        raise RuntimeFault(f"assertion failed in program {place}: {message}")


def device_print(prefix: Any, *values: Any, hex: bool = False, **_options: Any) -> None:
    """Print the values of each active program."""
    now = machine()
    ids = [now.program_ids(axis) for axis in range(3)]
    label = prefix if isinstance(prefix, str) else ""
    shown = values if isinstance(prefix, str) else (prefix, *values)
    for row in range(len(now.rows)):
        parts = [_text(value, row, hex) for value in shown]
        place = ", ".join(str(int(axis[row])) for axis in ids)
        sys.stdout.write(f"pid ({place}) {label.strip()} {' '.join(parts)}".rstrip() + "\n")


def _text(value: Any, row: int, as_hex: bool) -> str:
    if isinstance(value, Pointer):
        return f"{value.buffer.name} + {_text(value.offset, row, as_hex)}"
    if not isinstance(value, Tensor):
        return hex(value) if as_hex and isinstance(value, int) else str(value)
    rows = value.active_data()
    data = rows[row if len(rows) > 1 else 0]
    if data.ndim:
        return array_text(data, 1 << 20, as_hex=as_hex)
    return str(data if np.ma.is_masked(data) else data.item())


def static_assert(condition: Any, message: str = "") -> None:
    """Refuse a kernel whose condition does not hold.

    Raises:
        StaticAssertion: It does not.
        KernelFault: It is no constant.
    """
    if isinstance(condition, Tensor):
        raise KernelFault("tl.static_assert needs a constant", hint="Use tl.device_assert")
    if not condition:
        raise StaticAssertion(f"static assertion failed: {message}")


def static_print(*values: Any, sep: str = " ", end: str = "\n", **_options: Any) -> None:
    """Print constants once."""
    sys.stdout.write(sep.join(str(value) for value in values) + end)
