"""Ways of profiling: the values of the `mode` argument of `start`."""

# ruff: noqa: N801
# Enumerations have Proton's names, which their members are printed with.

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


class METRIC_TYPE(Enum):
    """What is measured."""

    CYCLE = 0


class SAMPLING_STRATEGY(Enum):
    """Which warps are measured."""

    NONE = 0
    SELECTIVE = 1


class BUFFER_STRATEGY(Enum):
    """What happens when a buffer is full."""

    CIRCULAR = 0
    FLUSH = 1


class BUFFER_TYPE(Enum):
    """Where measurements lie while a kernel runs."""

    SHARED = 1
    GLOBAL = 2


class GRANULARITY(Enum):
    """What has measurements of its own."""

    WARP = 1
    WARP_2 = 2
    WARP_4 = 3
    WARP_8 = 4
    CTA = 5
    WARP_GROUP = 6
    WARP_GROUP_2 = 7
    WARP_GROUP_4 = 8
    WARP_GROUP_8 = 9


def _table(choices: type[Enum]) -> dict[str, Any]:
    """The members by the names that users write."""
    return {name.lower(): member for name, member in choices.__members__.items()}


metric_types = _table(METRIC_TYPE)
sampling_strategies = _table(SAMPLING_STRATEGY)
buffer_strategies = _table(BUFFER_STRATEGY)
buffer_types = _table(BUFFER_TYPE)
granularities = _table(GRANULARITY)


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
        interval: Between two samples of a multiprocessor, in cycles; the nearest power of two is taken.

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
