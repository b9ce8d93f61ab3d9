"""What the `mode` argument of `start` asks for, from its text `name:option=value:…`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from bragg.proton.errors import InvalidArgument
from bragg.proton.mode import PCSampling
from bragg.proton.output.files import FORMATS
from bragg.record.config import Sampling

__all__ = ["ModeOptions"]

_FLUSHING, _SAMPLING = "periodic_flushing", "pcsampling"
_COLLECTIONS = {name: name for name in get_args(Sampling) if name != "off"}
_COLLECTION: Sampling = "serialized"  # as Proton does: samples are known to belong to their launch
# Exponents that the hardware takes.
_MIN_PERIOD, _MAX_PERIOD = 5, 31


@dataclass(frozen=True)
class ModeOptions:
    """What is done beside timing kernels.

    Attributes:
        flushed_format: Format of the file that each phase gets when it is complete; empty: at the end.
        sampling: How instructions are sampled; `off`: not at all.
        sample_period: They are every 2^n cycles.
    """

    flushed_format: str = ""
    sampling: Sampling = "off"
    sample_period: int = 15

    @classmethod
    def parse(cls, profiler: str, text: str) -> ModeOptions:
        """The options of a mode.

        Args:
            profiler: What measures, by Proton's name.
            text: The mode; empty: nothing beside.

        Raises:
            InvalidArgument: The profiler has no such mode, or the mode no such option.
        """
        if not text:
            return cls()
        mode = _Mode.split(f"{profiler.capitalize()}Profiler", text)
        if mode.name == _FLUSHING:
            mode.check_options(["format"])
            return cls(flushed_format=mode.choose("format", "hatchet", FORMATS))
        if mode.name == _SAMPLING and profiler == "cupti":
            mode.check_options(["interval", "collection"])
            collection = _COLLECTIONS[mode.choose("collection", _COLLECTION, _COLLECTIONS)]
            return cls(sampling=collection, sample_period=_period(mode.options.get("interval")))
        known = f"{_FLUSHING}[:format=…]" + (f", {_SAMPLING}[:interval=…]" if profiler == "cupti" else "")
        raise mode.unsupported(f"mode: {text}", [known])


@dataclass(frozen=True)
class _Mode:
    """A mode by its parts.

    Attributes:
        profiler: What measures, as Proton's messages call it.
        name: Of the mode.
        options: Their values by their names.
    """

    profiler: str
    name: str
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def split(cls, profiler: str, text: str) -> _Mode:
        name, *rest = text.split(":")
        return cls(profiler, name, dict(option.partition("=")[::2] for option in rest if option))

    def check_options(self, known: list[str]) -> None:
        for name in self.options:
            if name not in known:
                raise self.unsupported(f"option key: {name}", known)

    def choose(self, name: str, default: str, choices: Iterable[str]) -> str:
        value = self.options.get(name, default)
        if value not in choices:
            raise self.unsupported(f"{name}: {value}", choices)
        return value

    def unsupported(self, what: str, known: Iterable[str]) -> InvalidArgument:
        return InvalidArgument(f"{self.profiler}: unsupported {what}", hint=f"Known: {', '.join(known)}")


def _period(interval: str | None) -> int:
    """The power of two, as its exponent, that is nearest to an interval in cycles."""
    try:
        cycles = PCSampling().interval if interval is None else int(interval)
    except ValueError:
        cycles = 0
    if cycles <= 0:
        raise InvalidArgument(f"{_SAMPLING}: interval={interval}", hint="It is a number of cycles, above 0")
    return min(max(round(math.log2(cycles)), _MIN_PERIOD), _MAX_PERIOD)
