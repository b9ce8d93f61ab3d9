"""Numbers for people: one unit for a column, a unit for a single value."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass

# Largest first: a value is shown in the first unit in which it is at least one.
_LADDERS = {
    "ns": (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
    "1": (("", 1.0),),
}


@dataclass(frozen=True)
class Scale:
    """How the values of one column are written.

    Attributes:
        unit: Unit for the column header; empty for counts.
        divisor: Stored value of one unit.
        decimals: Digits after the point.
    """

    unit: str
    divisor: float
    decimals: int

    def text(self, value: float) -> str:
        """The number without its unit; empty for NaN; what would round to zero is shown as less than the last digit."""
        if math.isnan(value):
            return ""
        smallest = 10.0**-self.decimals
        scaled = value / self.divisor
        if 0 < abs(scaled) < smallest / 2:
            return f"{'' if scaled > 0 else '-'}<{smallest:.{self.decimals}f}"
        return f"{scaled:,.{self.decimals}f}"


def scale_for(unit: str, largest: float) -> Scale:
    """The scale in which the largest value of a column reads well.

    Args:
        unit: `ns`, `B`, `1`, or any other unit, which is kept.
        largest: In that unit; NaN when there is no value.
    """
    if unit not in _LADDERS:
        return Scale(unit, 1.0, 2 if largest >= 10 else 3)
    name, divisor = next((step for step in _LADDERS[unit] if largest >= step[1]), _LADDERS[unit][-1])
    return Scale(name, divisor, 0 if divisor == 1.0 else 2)


def value_text(value: float, unit: str) -> str:
    """A single value with its unit, to three digits or more: `12.3 ms`."""
    scale = scale_for(unit, abs(value))
    scaled = value / scale.divisor
    decimals = 0 if scale.decimals == 0 or abs(scaled) >= 1000 else max(0, 2 - int(math.log10(max(abs(scaled), 1.0))))
    return f"{scaled:,.{decimals}f} {scale.unit}".rstrip()


def time_text(time_ns: float) -> str:
    """A duration with its unit."""
    return value_text(time_ns, "ns")


def bytes_text(size_bytes: float) -> str:
    """A size with its unit, powers of 1000."""
    return value_text(size_bytes, "B")


def count_text(count: int, noun: str, nouns: str = "") -> str:
    """A count with its noun: `1 kernel`, `12,345 kernels`; `nouns` where an s does not make the plural."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def quantity_text(value: float, unit: str) -> str:
    """A value with its unit, shares of a whole as percent."""
    return share_text(value) if unit == "share" else value_text(value, unit)


def share_text(share: float) -> str:
    """A share of a whole, 0 to 1, as percent."""
    return "<0.1 %" if 0 < share < 0.0005 else f"{share:.1%}".replace("%", " %")


def signal_name(number: int) -> str:
    """`SIGKILL`; `signal 40` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
