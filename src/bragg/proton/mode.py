"""Ways of profiling: the values of the `mode` argument of `start`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = [
    "MMA",
    "BaseMode",
    "Default",
    "InstrumentationMode",
    "Optimize",
    "PCSampling",
    "buffer_strategies",
    "buffer_types",
    "granularities",
    "metric_types",
    "optimizations",
    "sampling_strategies",
]


class _Choice(Enum):
    """An option with the names that users write."""

    @classmethod
    def table(cls) -> dict[str, Any]:
        """The members by those names."""
        return {name.lower(): member for name, member in cls.__members__.items()}


METRIC_TYPE = _Choice("METRIC_TYPE", ["CYCLE"])
SAMPLING_STRATEGY = _Choice("SAMPLING_STRATEGY", ["NONE", "SELECTIVE"])
BUFFER_STRATEGY = _Choice("BUFFER_STRATEGY", ["CIRCULAR", "FLUSH"])
BUFFER_TYPE = _Choice("BUFFER_TYPE", ["SHARED", "GLOBAL"])
GRANULARITY = _Choice(
    "GRANULARITY",
    [
        *("CTA", "WARP", "WARP_2", "WARP_4", "WARP_8"),
        *("WARP_GROUP", "WARP_GROUP_2", "WARP_GROUP_4", "WARP_GROUP_8"),
    ],
)

metric_types = METRIC_TYPE.table()
sampling_strategies = SAMPLING_STRATEGY.table()
buffer_strategies = BUFFER_STRATEGY.table()
buffer_types = BUFFER_TYPE.table()
granularities = GRANULARITY.table()


class Optimize(Enum):
    """How instrumented kernels are made faster."""

    TIMESHIFT = "time_shift"
    SCHED_STORES = "sched_stores"
    SCHED_BARRIERS = "sched_barriers"
    CLOCK32 = "clock32"

    def __str__(self) -> str:
        return self.value


optimizations = {option.value: option for option in Optimize}

_LOOKUP = {
    "metric_type": metric_types,
    "sampling_strategy": sampling_strategies,
    "granularity": granularities,
    "buffer_strategy": buffer_strategies,
    "buffer_type": buffer_types,
}


@dataclass(frozen=True)
class BaseMode:
    """A way of profiling.

    Attributes:
        name: As in the string form, `name:option=value:...`.
    """

    name: str


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Samples of the program counters of a GPU.

    Attributes:
        interval: Between two samples, in cycles.

    Raises:
        ValueError: The interval is not positive.
    """

    name: str = field(default="pcsampling", init=False)
    interval: int = 1000

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ValueError("Interval must be a positive integer.")

    def __str__(self) -> str:
        return f"{self.name}:interval={self.interval}"


@dataclass(frozen=True)
class InstrumentationMode(BaseMode):
    """Measurements inside kernels; choices may be given by the names in the tables of this module.

    Raises:
        ValueError: An option has an unknown value.
    """

    metric_type: Any = metric_types["cycle"]
    sampling_strategy: Any = sampling_strategies["none"]
    sampling_options: str = ""
    granularity: Any = granularities["warp"]
    buffer_strategy: Any = buffer_strategies["circular"]
    buffer_type: Any = buffer_types["shared"]
    buffer_size: int = 0
    optimizations: Any = field(default_factory=list)

    def __post_init__(self) -> None:
        for option, table in _LOOKUP.items():
            value = getattr(self, option)
            if isinstance(value, str):
                object.__setattr__(self, option, _find(option, value, table))
        if isinstance(self.optimizations, str):
            names = [name.strip() for name in self.optimizations.split(",") if name.strip()]
            found = [_find("optimization", name, optimizations) for name in names]
            object.__setattr__(self, "optimizations", found)

    def __str__(self) -> str:
        options = {option: getattr(self, option) for option in _OPTIONS}
        options["optimizations"] = ",".join(map(str, self.optimizations))
        return ":".join([self.name, *(f"{option}={value}" for option, value in options.items())])


_OPTIONS = (
    "metric_type",
    "sampling_strategy",
    "sampling_options",
    "granularity",
    "buffer_strategy",
    "buffer_type",
    "buffer_size",
    "optimizations",
)


def _find(option: str, name: str, table: dict[str, Any]) -> Any:
    if name not in table:
        raise ValueError(f"Unknown {option}: {name}")
    return table[name]


@dataclass(frozen=True)
class Default(InstrumentationMode):
    """The instrumentation that suits most kernels."""

    name: str = field(default="default", init=False)


@dataclass(frozen=True)
class MMA(InstrumentationMode):
    """The instrumentation for matrix multiplications."""

    name: str = field(default="mma", init=False)
