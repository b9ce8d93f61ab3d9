"""A finding about code of the host, or about copies: its line is that under which most of a weight lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import hot_places
from bragg.analyze.causes.recurring import callers_of
from bragg.model import Confidence, Finding, Gain, Place, Quantity, Severity
from bragg.model.table import BoolArray, FloatArray

WAITS_A_STEP = "waits a step"
"""A quantity of findings about a host that waits for a GPU, where steps are known."""


@dataclass(frozen=True)
class Cause:
    """What keeps a program waiting.

    Attributes:
        rule: The rule that found it.
        what: What the host does, with its numbers; one line.
        change: What to do about it.
        gain: What the change saves; None: not known.
        confidence: How sure it is.
        evidence: The numbers that it rests on.
        severity: How much it matters.
    """

    rule: str
    what: str
    change: str
    gain: Gain | None
    confidence: Confidence
    evidence: tuple[Quantity, ...] = ()
    severity: Severity = Severity.WARNING


def host_finding(evidence: Evidence, nodes: BoolArray, weight: FloatArray, cause: Cause) -> Finding:
    """The finding, at the line of these nodes with most of the weight; both are [n_nodes].

    Other lines with much of it, and the callers of the first, are its other places.
    """
    places = hot_places(evidence.profile, nodes, weight) or [Place()]
    place = places[0]
    return with_places(
        evidence,
        Finding(
            cause.rule,
            cause.severity,
            cause.what,
            cause.change,
            node=place.node,
            file=place.file,
            line=place.line,
            evidence=cause.evidence,
            gain=cause.gain,
            confidence=cause.confidence,
        ),
        places,
    )


def with_places(evidence: Evidence, finding: Finding, places: Sequence[Place]) -> Finding:
    """The finding at the first of some places; the others, and the lines that call the first, are its other places."""
    place = places[0]
    callers = [] if place.node is None else callers_of(evidence, place.node)
    return moved(replace(finding, places=()), place, [*places[1:], *callers])


def moved(finding: Finding, place: Place, others: Iterable[Place] = ()) -> Finding:
    """The finding at another line; where it was, and others, are its other places."""
    lines = (Place(finding.file, finding.line, node=finding.node), *finding.places, *others)
    kept: dict[tuple[str, int], Place] = {}
    for each in lines:
        if each.file and (each.file, each.line) != (place.file, place.line):
            kept.setdefault((each.file, each.line), each)
    return replace(finding, node=place.node, file=place.file, line=place.line, places=tuple(kept.values()))


def moved_to(finding: Finding, places: Sequence[Place]) -> Finding:
    """The finding at the first of some places, with the others; where it is, if there are none."""
    return moved(finding, places[0], places[1:]) if places else finding


def counted(evidence: Evidence, count: float, noun: str = "", nouns: str = "") -> str:
    """A count for each step: `64 copies a step`, `1 a step`, `0.3 times a step`, `5,301 in all`.

    Estimates are a few percent off: what is that near to a whole number is one.

    Args:
        evidence: Of the profile.
        count: In the part of it that is meant.
        noun: What is counted; empty: nothing is said.
        nouns: More than one of it, where an s does not make the plural.
    """
    value = evidence.per_step(count)
    is_whole = abs(value - round(value)) <= max(_WHOLE * value, 0.05) and round(value) > 0
    number = f"{value:,.0f}" if is_whole or value >= _MANY else f"{value:.2g}"
    name = noun if number == "1" or not noun else nouns or f"{noun}s"
    return " ".join(filter(None, (number, name, evidence.step_word)))


# What is so near to a whole number, as a share of it, is one; from so many on, all are.
_WHOLE, _MANY = 0.02, 10


def lasting(time_ns: float) -> str:
    """`1.72 ms`, `28.8 us`."""
    is_short = time_ns < _SHORT_NS
    return f"{three_digits(time_ns / (1e3 if is_short else 1e6))} {'us' if is_short else 'ms'}"


_SHORT_NS = 100_000


def three_digits(value: float) -> str:
    """`0.992`, `16.4`, `2,518`: for sentences, without an exponent."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
