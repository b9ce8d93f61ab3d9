"""Asks every rule what it finds in a profile, and ranks what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.frameworks import in_its_words
from bragg.analyze.causes.host_finding import WAITS_A_STEP
from bragg.analyze.causes.needs import OWN_HOST_TIME, TRACE, Need
from bragg.analyze.causes.thresholds import OFTEN, Threshold
from bragg.analyze.causes.work_finding import OF_KERNEL, SHARE_OF_GPU
from bragg.model import Finding
from bragg.registry import RULES, RUN_RULES, STEP_RULES


class HostTime(Enum):
    """What a rule says of the time in which a GPU waits for the host to launch."""

    NOTHING = auto()
    CAUSE = auto()  # what keeps the host from launching
    LOOP = auto()  # which loop launches, whatever it does
    WHOLE = auto()  # that launches come late, whatever keeps the host


@dataclass(frozen=True)
class Rule:
    """One thing to look for.

    Attributes:
        find: What it finds, what matters most first.
        summary: What it looks for, for the docs and for the list of what was found fine.
        needs: What a profile must have.
        thresholds: The numbers that it compares with.
        change: What to do about it, for the docs.
        host_time: What it says of the time in which a GPU waits for the host.
        costs_precision: Whether the change computes the same with fewer bits.
    """

    find: Callable[[Evidence], Iterator[Finding]]
    summary: str
    needs: tuple[Need, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    change: str = ""
    host_time: HostTime = HostTime.NOTHING
    costs_precision: bool = False


# A cause that gains less than this share of what the whole does explains little of it.
_EXPLAINS = 0.3
# With many waits in a step no graph can be captured of it: they have to go first.
_PREVENTS = 0.1


@dataclass(frozen=True)
class Analysis:
    """What all rules say of one profile.

    Attributes:
        findings: As `ranked`.
        fine: Rules that looked and found nothing.
        skipped: Rules that could not judge, with what they miss.
    """

    findings: list[Finding] = field(default_factory=list)
    fine: list[str] = field(default_factory=list)
    skipped: dict[str, Need] = field(default_factory=dict)


def findings(evidence: Evidence, rules: Mapping[str, Rule] = RUN_RULES) -> list[Finding]:
    """What the rules of a table find, in its order."""
    asked = [rule for rule in rules.values() if _missing(rule, evidence) is None]
    return [finding for rule in asked for finding in rule.find(evidence)]


def analysis(evidence: Evidence, names: Sequence[str] = ()) -> Analysis:
    """What all rules say, and what checks added to the profile.

    Args:
        evidence: Of one profile.
        names: The rules to ask; none: all, and what the profile carries counts, too.

    Raises:
        UsageError: There is no such rule.
    """
    told = [] if names else list(evidence.profile.carried)
    result = Analysis()
    for name in dict.fromkeys(names or _whole_run()):
        found = _asked(name, evidence)
        if isinstance(found, Need):
            result.skipped[name] = found
        elif found:
            told += [in_its_words(finding, evidence.profile) for finding in found]
        else:
            result.fine.append(name)
    result.findings.extend(ranked(told))
    return result


def _asked(name: str, evidence: Evidence) -> list[Finding] | Need:
    """What a rule finds, or what it misses; a rule of another package that fails ends no analysis."""
    try:
        rule: Rule = RULES[name]
        missing = _missing(rule, evidence)
        return list(rule.find(evidence)) if missing is None else _without_options_given(missing, evidence)
    except Exception as error:
        if name not in RULES or not RULES.is_plug_in(name):
            raise
        return Need(f"a working plug-in ({type(error).__name__}: {error})", "", lambda _: False)


def _whole_run() -> tuple[str, ...]:
    """What is said of steps repeats what bounds the program."""
    return tuple(name for name in RULES if name not in STEP_RULES)


def _missing(rule: Rule, evidence: Evidence) -> Need | None:
    """What a rule needs and the profile lacks; None: it can judge."""
    needs = rule.needs if rule.host_time is HostTime.NOTHING else (*rule.needs, OWN_HOST_TIME)
    return next((need for need in needs if not need.is_met(evidence)), None)


def _without_options_given(need: Need, evidence: Evidence) -> Need:
    """What a recording with a timeline lacks, another one with a timeline lacks too."""
    return replace(need, option="") if need.option == TRACE and len(evidence.profile.slices) else need


def ranked(found: Iterable[Finding]) -> list[Finding]:
    """What saves most of each step first, then what is saved once, what has no known gain, and what gains nothing.

    What is said of a program as a whole stands behind the causes that explain at least three tenths of it, and so does
    what is said of a loop. What costs precision stands behind work of the GPU that need not be done, if that gains so
    much.
    """
    told = sorted(found, key=_rank)
    for whole in tuple(told):
        behind = max((i for i, each in enumerate(told) if _explains(each, whole)), default=0)
        at = told.index(whole)
        if behind > at:
            told.insert(behind, told.pop(at))
    return told


def _explains(cause: Finding, whole: Finding) -> bool:
    if cause.gain is None or whole.gain is None or not (_is_behind(cause, whole) or _costs_more(cause, whole)):
        return False
    least = _PREVENTS if _waits_often(cause) else _EXPLAINS
    return cause.gain.is_once == whole.gain.is_once and cause.gain.share >= least * whole.gain.share > 0


def _waits_often(finding: Finding) -> bool:
    return any(each.name == WAITS_A_STEP and each.value >= OFTEN.value for each in finding.evidence)


def _is_behind(cause: Finding, whole: Finding) -> bool:
    roles = _host_time(cause), _host_time(whole)
    return HostTime.NOTHING not in roles and roles[0].value < roles[1].value


def _costs_more(cause: Finding, whole: Finding) -> bool:
    rules: Mapping[str, Rule] = RULES
    costs = [each.rule in rules and rules[each.rule].costs_precision for each in (cause, whole)]
    is_waste = _waits_often(cause) or any(each.name == SHARE_OF_GPU for each in cause.evidence)
    return costs == [False, True] and is_waste


def _host_time(finding: Finding) -> HostTime:
    rules: Mapping[str, Rule] = RULES
    return rules[finding.rule].host_time if finding.rule in rules else HostTime.NOTHING


def _rank(finding: Finding) -> tuple[int, float, int, int]:
    gain = finding.gain
    if not finding.is_timed:  # what else is found is of the host, which executed the kernels instead of a GPU
        saved = max((each.value for each in finding.evidence if each.name == OF_KERNEL), default=0.0)
        return -1, -saved, -finding.severity, -finding.confidence
    group = 2 if gain is None else 3 if gain.is_nothing else 1 if gain.is_once else 0
    return group, -(gain.share if gain else 0.0), -finding.severity, -finding.confidence
