"""What a rule of the analysis or a checker of the debugger found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import IntEnum
from typing import Any

from bragg.model.ids import NodeId


class Severity(IntEnum):
    """How much a finding matters; a higher number matters more."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


class Confidence(IntEnum):
    """How sure a finding is; a higher number is surer."""

    HEURISTIC = 0  # what was measured fits, and other causes fit as well
    LIKELY = 1  # what was measured fits, and other causes are rare
    PROVEN = 2  # what was recorded shows it


@dataclass(frozen=True)
class Quantity:
    """A number that a finding rests on.

    Attributes:
        name: What was counted or measured, in words: `launches a step`.
        value: How much.
        unit: `ns`, `B`, `1` for counts, `share` for what is 0 to 1, or another unit as it is written.
    """

    name: str
    value: float
    unit: str = "1"


@dataclass(frozen=True)
class Place:
    """Where in a program, or in its profile, something is.

    Attributes:
        file: Source file; empty: not known.
        line: Its line, from 1; 0: not known.
        kernel: Name of the kernel; empty: of none.
        node: The call path; None: of none.
    """

    file: str = ""
    line: int = 0
    kernel: str = ""
    node: NodeId | None = None


COMPILED_FOR = "compiled for"
"""Of the details: the GPU that a kernel was compiled for, which no GPU has executed."""
_LEAST_PRINTED = 0.0005  # of a share, as `percent_text` writes it


def percent_text(share: float) -> str:
    """A share of a run as sentences write it, with what the next run of the same program is likely to repeat.

    Whole percents, but tenths of them below 10 % and above 99 %.

    Args:
        share: Measured or estimated, 0 to 1.
    """
    if 0 < share < _LEAST_PRINTED:
        return "<0.1 %"
    is_whole = 0.0995 <= share <= 0.99 or share >= 1 - _LEAST_PRINTED
    return f"{share * 100:.{0 if is_whole else 1}f} %"


@dataclass(frozen=True)
class Gain:
    """Wall time that a change saves at most.

    Attributes:
        wall_ns: How much; 0: what is removed hides behind what `limit` names.
        of_ns: The wall time that it is a part of: the steady state, or the whole run if `is_once`.
        limit: What keeps it from being more: `the host`, `the GPU`; empty: nothing.
        waits_are_measured: Whether a timeline shows what waits for what; else that is estimated from sums.
        saving_is_measured: Whether samples or clocks tell which part of the work goes away; else the rule knows it.
        is_once: Whether it is saved once a run, not in each step.
    """

    wall_ns: float
    of_ns: float
    limit: str = ""
    is_once: bool = False
    waits_are_measured: bool = False
    saving_is_measured: bool = False

    @property
    def share(self) -> float:
        """Of `of_ns`, 0 to 1."""
        return min(self.wall_ns / self.of_ns, 1.0) if self.of_ns > 0 else 0.0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Gain:
        """From the fields that this version knows: `is_measured` of older files could mean either of two."""
        return cls(**_known_fields(cls, values))

    @property
    def is_nothing(self) -> bool:
        """Whether it is printed as 0.0 %."""
        return self.share < _LEAST_PRINTED


@dataclass(frozen=True)
class Finding:
    """One statement about a program.

    Attributes:
        rule: Name of the rule or checker that found it.
        severity: How much it matters.
        message: What is wrong, with the evidence; one line.
        hint: What to do about it; may be empty.
        node: The call path it is about; None when it is about the whole profile.
        kernel: Name of the kernel it is about; empty: of none.
        file: Source file of the line it is about; empty: of none.
        line: That line, from 1; 0: of none.
        evidence: The numbers that it rests on.
        places: Where else it shows.
        gain: What following the hint saves; None: not known.
        confidence: How sure it is.
        details: What else is known, in words, with what it is: `("tensor", "x (fp32[1000], strides [1])")`.
    """

    rule: str
    severity: Severity
    message: str
    hint: str = ""
    node: NodeId | None = None
    kernel: str = ""
    file: str = ""
    line: int = 0
    evidence: tuple[Quantity, ...] = ()
    places: tuple[Place, ...] = ()
    gain: Gain | None = None
    confidence: Confidence = Confidence.LIKELY
    details: tuple[tuple[str, str], ...] = ()

    @property
    def is_timed(self) -> bool:
        """Whether it is no finding about a kernel that no GPU has executed."""
        return all(name != COMPILED_FOR for name, _ in self.details)

    def is_worth(self, least_gain: float) -> bool:
        """Whether it saves at least a share of the wall time, and not nothing; one whose gain is not known is."""
        return self.gain is None or (self.gain.share >= least_gain and not self.gain.is_nothing)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Every call path that it names."""
        named = (self.node, *(place.node for place in self.places))
        return tuple(node for node in named if node is not None)

    def moved(self, target: Callable[[NodeId], NodeId]) -> Finding:
        """The finding over another tree; places whose node has gone are dropped.

        Args:
            target: Node of the new tree for one of the old; -1: it has gone.
        """
        places = [place if place.node is None else replace(place, node=target(place.node)) for place in self.places]
        kept = tuple(place for place in places if place.node is None or place.node >= 0)
        return replace(self, node=None if self.node is None else target(self.node), places=kept)

    def to_json(self) -> dict[str, Any]:
        """JSON values; of the place, the evidence and the gain only what there is."""
        values = {**asdict(self), "severity": int(self.severity), "confidence": int(self.confidence)}
        always = ("rule", "severity", "message", "hint", "node", "confidence")
        return {name: value for name, value in values.items() if value or name in always}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Finding:
        """What `to_json` made, of this version or a later one.

        Raises:
            TypeError, ValueError: It did not.
        """
        known = _known_fields(cls, values)
        known["severity"] = Severity(known["severity"])
        known["confidence"] = Confidence(known.get("confidence", Confidence.LIKELY))
        known["evidence"] = tuple(Quantity(**_known_fields(Quantity, each)) for each in known.get("evidence", ()))
        known["places"] = tuple(Place(**_known_fields(Place, each)) for each in known.get("places", ()))
        known["details"] = tuple((str(name), str(text)) for name, text in known.get("details", ()))
        known["gain"] = Gain.from_json(known["gain"]) if known.get("gain") else None
        return cls(**known)

    @property
    def text(self) -> str:
        """Message and hint as one line; a hint that introduces itself (`where: ...`) is a clause of its own."""
        separator = "; " if ": " in self.hint else ": "
        return f"{self.message}{separator}{self.hint}" if self.hint else self.message


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "NodeId | None": (int, type(None)),
}


def _known_fields(of: type[Finding | Gain | Place | Quantity], values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a JSON object that this version knows.

    Raises:
        TypeError: It is no object, or a text or number in it has another type.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"{of.__name__} is {type(values).__name__}")
    known = {field: values[field.name] for field in fields(of) if field.name in values}
    for field, value in known.items():
        if type(value) not in _TYPES.get(str(field.type), (type(value),)):  # `True` is an `int`, too
            raise TypeError(f"{field.name} of {of.__name__} is {type(value).__name__}")
    return {field.name: value for field, value in known.items()}
