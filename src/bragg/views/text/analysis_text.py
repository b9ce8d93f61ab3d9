"""What an analysis says, in lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, product, takewhile, zip_longest

from bragg.analyze.causes.bounds import Bounds
from bragg.analyze.causes.rest_of_run import Took, kernels_outside, rest_of_run
from bragg.analyze.report import Answered
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.finding import percent_text
from bragg.views.text.below_findings import N_FEW_NAMES, N_NAMES, about_gains, below_findings
from bragg.views.text.bounds_text import bounds_sentence, parts_lines
from bragg.views.text.finding_text import (
    advice_text,
    at_place,
    finding_line,
    gain_text,
    message_text,
    place_text,
    short_path,
)
from bragg.views.text.labels import Labels
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, time_text

# In so many columns; narrower lines may be more.
_N_LINES, _COLUMNS = 25, 80
_N_FINDINGS = 6
# Lines that each text may take.
_N_WRAPPED = 12
# Findings that gain less are counted, not shown.
LEAST_GAIN = 0.01
# What a message says of the launch at its call path.
_THIS_LAUNCH = "this launch"
_N_OPERATORS = 4
_N_OUTSIDE = 4
# As wide as a gain.
_GAIN_INDENT = " " * 11
_NUMBERS = re.compile(r"\d[\d,.]*(?: [mun]s| s\b| %| [kMGT]?B)?")
_STEADY = "The steady state"
# Of a finding's share, and how many times it, or the time of it, is as large: a gain that is so much another is told.
_APART, _TIMES, _TIMES_AS_LONG = 0.1, 2, 1.5
ChangedFinding = tuple[Finding | None, Finding | None]
"""A finding of the run before, and the same one of that after; None: it is not there."""
# So many steps may all be unusual ones.
_FEW = 5


def analysis_lines(answer: Answered, style: Style, least_gain: float = LEAST_GAIN) -> list[str]:
    """The whole answer, in at most 25 lines of 80 columns.

    Args:
        answer: What bounds the program, and what the rules found.
        style: Of the terminal.
        least_gain: Findings that gain less are counted, not shown.
    """
    bounds, analysis, shown = answer.bounds, answer.analysis, answer.worth(least_gain)
    operators, parts = _operators_of(answer, shown), [*parts_lines(bounds)]
    n_lines = _N_LINES * max(_COLUMNS // (style.width or _COLUMNS), 1)
    n_most = min(len(shown), _N_FINDINGS)
    facts = RunFacts.of(answer.evidence.profile)
    said = [f"  warning: {text}" for text in filter(None, (facts.starved_clause, facts.sliced))]
    warnings = [style.warning(line) for text in said for line in style.wrap(text, _N_WRAPPED, "    ")]
    # Where it is too much, first the rest names less, then the texts of lines are left out, then findings but the first
    # are counted, at last what took the rest of the run is left out.
    shorter = ((N_NAMES, n_most), (N_FEW_NAMES, n_most), (N_FEW_NAMES, 1), (N_FEW_NAMES, 0))
    whole = product([[*_about_rest(answer), *parts]], range(n_most, min(n_most, 1) - 1, -1), shorter)
    for about, n_shown, (n_names, n_codes) in chain(whole, product([parts], range(n_most, -1, -1), shorter[-1:])):
        head = [line for text in about for line in style.wrap(f"  {text}", _N_WRAPPED, "    ")]
        findings = [
            line
            for number, finding in enumerate(shown[:n_shown], 1)
            for line in _finding_lines(
                number, finding, operators[number - 1], bounds, style, answer.code_of(finding) * (number <= n_codes)
            )
        ]
        beside = [
            line
            for text in below_findings(bounds, analysis, shown, n_shown, least_gain, n_names)
            for line in style.wrap(text, _N_WRAPPED, "  ")
        ]
        sentence = map(style.bold, style.wrap(bounds_sentence(bounds), _N_WRAPPED))
        lines = [*sentence, *warnings, *head, *findings, *beside]
        if len(lines) <= n_lines:
            break
    return lines


def best_findings(answer: Answered, n: int) -> list[Finding]:
    """The findings that gain most, or are of kernels that no GPU executed; where there are none, what was found."""
    worth = answer.worth(LEAST_GAIN)
    not_timed = [each for each in worth if not each.is_timed]
    return (not_timed or [each for each in worth if each.gain is not None] or worth)[:n]


def best_lines(answer: Answered, best: Sequence[Finding], style: Style, n_changes: int = 0) -> Iterator[str]:
    """What bounds the program, if it is known, and findings below it with what they save.

    Args:
        answer: What bounds it.
        best: The findings.
        style: How to decorate, and the width to keep.
        n_changes: So many of the findings say what to change.
    """
    bounds = answer.bounds
    if bounds.host_ns or (bounds.busy is not None and bounds.of_ns):
        *lines, last = style.wrap(bounds_sentence(bounds), _N_WRAPPED)
        yield from map(style.bold, lines)
        title = _title(bounds, best)
        titled = f"{last} {title}" if best else last
        yield from map(style.bold, [titled] if style.fits(titled) or not best else [last, title])
    for number, finding in enumerate(best):
        sure = "heuristic: " if finding.confidence is Confidence.HEURISTIC else ""
        gain = f"{gain_text(finding):>7}  " if finding.gain else ""
        code = answer.code_of(finding) if number < n_changes else ""
        text = f"  {gain}{sure}{message_text(finding)}{'' if code else at_place(finding)}"
        yield from style.wrap(text, _N_WRAPPED, _GAIN_INDENT)
        yield from _code_line(finding, code, _GAIN_INDENT, style)
        if finding.hint and number < n_changes:
            yield from map(
                style.dim, style.wrap(f"{_GAIN_INDENT}{advice_text(finding.hint)}", _N_WRAPPED, _GAIN_INDENT)
            )
    for text in (*about_gains(best), rest_sentence(answer)):
        yield from style.wrap(text, _N_WRAPPED, "  ") if text else ()


def _title(bounds: Bounds, best: Sequence[Finding]) -> str:
    """What the gains below it are shares of, as far as they do not say it themselves."""
    gains = [finding.gain for finding in best if finding.gain is not None]
    if best and not gains:
        return "Found:"
    if all(gain.is_once for gain in gains) or not (bounds.n_steps or bounds.of_ns):
        return "To save:"
    return f"To save of {f'these {bounds.step}s' if bounds.n_steps else 'this time'}:"


def changed_findings(before: Answered, after: Answered) -> list[ChangedFinding]:
    """What has gone, is new, or saves a much other share or time than before; a finding may move to another line.

    Of one rule and kernel, findings with the same words apart from numbers are one; the others are in order of gain,
    so as many remain as both sides have. If a rule then has one that has gone, and one that is new, they are one.
    """
    sides: list[dict[tuple[str, str], list[Finding]]] = [defaultdict(list), defaultdict(list)]
    for side, one in zip(sides, (before, after), strict=True):
        for each in one.worth(LEAST_GAIN):
            if each.gain is not None:
                side[each.rule, each.kernel].append(each)
    n_before, n_after = (side.bounds.n_steps for side in (before, after))
    more_steps = n_after / n_before if n_before and n_after else 1.0
    changed: list[ChangedFinding] = []
    for key in dict.fromkeys(chain(*sides)):
        first, second = (_by_words(side[key]) for side in sides)
        others = (
            [each for words, each in one.items() if words not in other]
            for one, other in ((first, second), (second, first))
        )
        named = [(first[words], second[words]) for words in first if words in second]
        changed += [pair for pair in named if _saves_else(*pair, more_steps)]
        for earlier, later in zip_longest(*others):
            if earlier is None or later is None or _saves_else(earlier, later, more_steps):
                changed += [(earlier, None)] if earlier else []
                changed += [(None, later)] if later else []
    return _joined(changed)


def _joined(changed: Sequence[ChangedFinding]) -> list[ChangedFinding]:
    """As one pair the two of a rule that has nothing else to tell."""
    by_rule: dict[str, list[ChangedFinding]] = defaultdict(list)
    for pair in changed:
        by_rule[next(each.rule for each in pair if each)].append(pair)
    joined: list[ChangedFinding] = []
    for pairs in by_rule.values():
        match pairs:
            case [(Finding() as gone, None), (None, Finding() as new)]:
                joined.append((gone, new))
            case _:
                joined += pairs
    return joined


def _by_words(findings: Sequence[Finding]) -> dict[tuple[str, int], Finding]:
    """Findings by their words without numbers, and how many before them have the same."""
    found: dict[tuple[str, int], Finding] = {}
    for each in findings:
        words = _words(each)
        found[words, sum(words == others for others, _ in found)] = each
    return found


def _words(finding: Finding) -> str:
    return _NUMBERS.sub("", finding.message)


def _saves_else(before: Finding, after: Finding, more_steps: float) -> bool:
    """Whether a finding saves a share that is much larger or smaller, or that is so of the time of a step, too.

    Args:
        before: The finding.
        after: The same one of the run after.
        more_steps: How many times as many steps the run after made; 1: that is not known.
    """
    if before.gain is None or after.gain is None:
        return False
    least, most = sorted((before.gain, after.gain), key=lambda gain: gain.share)
    if most.share - least.share < _APART:
        return False
    steps = 1.0 if after.gain.is_once else more_steps if most is after.gain else 1 / more_steps
    return most.share > _TIMES * least.share or most.wall_ns > _TIMES_AS_LONG * steps * least.wall_ns


def changed_lines(changed: Sequence[ChangedFinding], style: Style) -> list[str]:
    """A line for each of them, those that have gone first."""
    lines = [f"finding gone: {finding_line(before)}" for before, after in changed if before and not after]
    for before, after in changed:
        if after:
            said = f"finding changed: {gain_text(before)} > " if before else "new finding: "
            lines.append(f"{said}{finding_line(after)}")
    return [style.cut(line, style.width) for line in lines]


def _about_rest(answer: Answered) -> Iterator[str]:
    if rest := rest_sentence(answer):
        yield rest
    if outside := kernels_outside(answer.evidence):
        named = outside.names[:_N_OUTSIDE]
        others = f" and {len(outside.names) - len(named)} others" if len(outside.names) > len(named) else ""
        yield (
            f"No rule judges {', '.join(map(printable, named))}{others}, {percent_text(outside.share)} of the GPU time "
            "of the run: they ran outside of the steady state alone."
        )


def rest_sentence(answer: Answered) -> str:
    """That steps are few; what took most of a run whose steady state is short, and how later runs take less."""
    rest, n_steps = rest_of_run(answer.evidence) if answer.bounds.is_steady else None, answer.bounds.n_steps
    few = (
        f"Only {count_text(n_steps, answer.bounds.step)}: shares may differ in a longer run. "
        if 0 < n_steps < _FEW
        else ""
    )
    if rest is None:
        return few.rstrip()
    texts = [f"{each.name} {time_text(each.time_ns)} ({_where(each)})" for each in rest.took]
    took = f"; of the rest {', '.join(texts).replace(' ', ' took ', 1)}" if texts else ""
    changes = "".join(f" {text}." for text in rest.changes)
    return f"{few}{_STEADY} is {percent_text(rest.share)} of the run{took}.{changes}"


def _where(took: Took) -> str:
    return printable(took.what) if took.what else f"{short_path(took.place.file)}:{took.place.line}"


def _operators_of(answer: Answered, shown: Sequence[Finding]) -> list[str]:
    """The last operators of the paths of findings whose line does not tell them apart; empty: it does, or has none."""
    tree, labels = answer.evidence.profile.tree, Labels(answer.evidence.profile.tree.frames)
    places = Counter(map(place_text, shown))
    found = []
    for finding in shown:
        is_clear = finding.node is None or (places[place_text(finding)] == 1 and _THIS_LAUNCH not in finding.message)
        path = [] if is_clear or finding.node is None else tree.path(finding.node)
        is_last = takewhile(lambda node: tree.kind[node] == FrameKind.OPERATOR, reversed(path))
        names = [labels.name(tree.frame_of(node)) for node in is_last][:_N_OPERATORS]
        found.append(" → ".join(reversed(names)))
    return found


def _finding_lines(
    number: int, finding: Finding, operators: str, bounds: Bounds, style: Style, code: str
) -> Iterator[str]:
    gain, of_what = finding.gain, ""
    if gain and gain.wall_ns and gain.is_once:
        of_what = f" ({time_text(gain.wall_ns)})"
    elif gain and gain.wall_ns and bounds.n_steps:
        of_what = f" of a {bounds.step} ({time_text(gain.wall_ns / bounds.n_steps)})"
    elif gain and gain.wall_ns:
        of_what = f"{' of the steady state' * bounds.is_steady} ({time_text(gain.wall_ns)})"
    saves = "saves " if gain and gain.wall_ns else ""
    head = f"{number}. {saves}{gain_text(finding)}{of_what}  {finding.rule}, {finding.confidence.name.lower()}"
    limit = f"; the gain is limited by {finding.gain.limit}" if finding.gain and finding.gain.limit else ""
    indent = "   "
    yield from map(style.bold, style.wrap(f"{head}{limit}", _N_WRAPPED, indent))
    at = f" at {operators}" if operators else ""
    yield from style.wrap(f"{indent}{message_text(finding)}{'' if code else at_place(finding)}{at}", _N_WRAPPED, indent)
    yield from _code_line(finding, code, indent, style)
    if finding.hint:
        yield from style.wrap(f"{indent}{advice_text(finding.hint)}", _N_WRAPPED, indent)


def _code_line(finding: Finding, code: str, indent: str, style: Style) -> Iterator[str]:
    """The line that a finding names with its text, cut to the width; none where that is not known."""
    if code:
        yield style.head(f"{indent}{place_text(finding)}  {printable(code.expandtabs(4))}", style.width)
