"""What an analysis says, in lines."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, product, takewhile
from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import Any

from bragg.analyze.causes.bounds import Bounds, Part
from bragg.analyze.causes.hardware_limits import Limits
from bragg.analyze.causes.rest_of_run import Took, kernels_outside, rest_of_run
from bragg.analyze.causes.work_finding import SHARE_OF_GPU
from bragg.analyze.engine import Analysis
from bragg.analyze.report import Answered
from bragg.model import Confidence, Finding, FrameKind
from bragg.model.finding import percent_text
from bragg.views.text.labels import Labels
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, time_text

__all__ = [
    "LEAST_GAIN",
    "NO_CAUSE",
    "OF_RUN",
    "advice_text",
    "analysis_lines",
    "best_findings",
    "best_lines",
    "bounds_sentence",
    "brief_json",
    "changed_findings",
    "changed_lines",
    "finding_line",
    "gain_text",
    "markdown_lines",
    "place_text",
    "rest_sentence",
    "short_path",
]

_N_PARTS = 4
# Rules of a list that are named, and where lines are few; --json names all.
_N_NAMES, _N_FEW_NAMES = 8, 2
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
OF_RUN = " of the run"
"""What a gain is a share of that is made once, not in each step."""
NO_CAUSE = "No rule found a cause; most rules are for programs that use a GPU."
"""Of a program without one."""
_LEAST_PART = 0.005
# Of the GPU's time: less is not worth a line before the host keeps up.
_MUCH_BEHIND = 0.05
_NUMBERS = re.compile(r"\d[\d,.]*(?: [mun]s| s\b| %| [kMGT]?B)?")
# What takes less than this share of the time bounds not all of it, and up to half of it not most.
_ALL, _MOST = 0.8, 0.5
# Of what imports took: a program that did less has hardly begun.
_LITTLE = 0.05
_STEADY = "The steady state"
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
    operators, parts = _operators_of(answer, shown), [*_parts_line(bounds)]
    n_lines = _N_LINES * max(_COLUMNS // (style.width or _COLUMNS), 1)
    n_most = min(len(shown), _N_FINDINGS)
    said = [f"  warning: {text}" for text in RunFacts.of(answer.evidence.profile).disturbances()]
    warnings = [style.warning(line) for text in said for line in style.wrap(text, _N_WRAPPED, "    ")]
    # Where it is too much, first the rest names less, then the texts of lines are left out, then findings but the first
    # are counted, at last what took the rest of the run is left out.
    shorter = ((_N_NAMES, n_most), (_N_FEW_NAMES, n_most), (_N_FEW_NAMES, 1), (_N_FEW_NAMES, 0))
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
            for text in _rest(bounds, analysis, shown, n_shown, least_gain, n_names)
            for line in style.wrap(text, _N_WRAPPED, "  ")
        ]
        sentence = map(style.bold, style.wrap(bounds_sentence(bounds), _N_WRAPPED))
        lines = [*sentence, *warnings, *head, *findings, *beside]
        if len(lines) <= n_lines:
            break
    return lines


def best_findings(answer: Answered, n: int) -> list[Finding]:
    """The findings that gain most; where none has a known gain, what was found."""
    worth = answer.worth(LEAST_GAIN)
    return ([each for each in worth if each.gain is not None] or worth)[:n]


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
        text = f"  {gain}{sure}{_message(finding)}{'' if code else _at(finding)}"
        yield from style.wrap(text, _N_WRAPPED, _GAIN_INDENT)
        yield from _code_line(finding, code, _GAIN_INDENT, style)
        if finding.hint and number < n_changes:
            yield from map(
                style.dim, style.wrap(f"{_GAIN_INDENT}{advice_text(finding.hint)}", _N_WRAPPED, _GAIN_INDENT)
            )
    for text in (*_about_gains(best), rest_sentence(answer)):
        yield from style.wrap(text, _N_WRAPPED, "  ") if text else ()


def _title(bounds: Bounds, best: Sequence[Finding]) -> str:
    """What the gains below it are shares of, as far as they do not say it themselves."""
    gains = [finding.gain for finding in best if finding.gain is not None]
    if best and not gains:
        return "Found:"
    if all(gain.is_once for gain in gains) or not (bounds.n_steps or bounds.of_ns):
        return "To save:"
    return f"To save of {f'these {bounds.step}s' if bounds.n_steps else 'this time'}:"


def changed_findings(before: Answered, after: Answered) -> tuple[list[Finding], list[Finding]]:
    """Findings of before that have gone, and those that are new; a finding may move to another line.

    Of one rule and kernel, findings with the same words apart from numbers are one; the others are in order of gain,
    so as many remain as both sides have.
    """
    sides: list[dict[tuple[str, str], list[Finding]]] = [defaultdict(list), defaultdict(list)]
    for side, one in zip(sides, (before, after), strict=True):
        for each in one.worth(LEAST_GAIN):
            if each.gain is not None:
                side[each.rule, each.kernel].append(each)
    gone: list[Finding] = []
    new: list[Finding] = []
    for key in dict.fromkeys(chain(*sides)):
        words = [{_NUMBERS.sub("", each.message) for each in side[key]} for side in sides]
        first, second = (
            [each for each in side[key] if _NUMBERS.sub("", each.message) not in other]
            for side, other in zip(sides, reversed(words), strict=True)
        )
        n_moved = min(len(first), len(second))
        gone += first[n_moved:]
        new += second[n_moved:]
    return gone, new


def changed_lines(gone: Sequence[Finding], new: Sequence[Finding], style: Style) -> list[str]:
    """A line for each finding that has gone, is new, or is still there in other words."""
    before, lines = list(gone), []
    for each in new:
        same = next((one for one in before if one.rule == each.rule), None)
        if same is not None:
            before.remove(same)
        lines.append(f"{f'finding changed: {gain_text(same)} > ' if same else 'new finding: '}{finding_line(each)}")
    lines = [*(f"finding gone: {finding_line(each)}" for each in before), *lines]
    return [style.cut(line, style.width) for line in lines]


def finding_line(finding: Finding) -> str:
    """A finding in one line: what it gains, its rule, what was found and where."""
    return f"{gain_text(finding)}  {finding.rule}: {_message(finding)}{_at(finding)}"


_LACKS = {
    "a kernel that ends": ", and a kernel failed",
    "more work": ", in too few kernels and copies",
    "times": ", at times that are not known",
}


def bounds_sentence(bounds: Bounds) -> str:
    """One sentence on what bounds a program."""
    if bounds.host_ns:
        return _host_sentence(bounds)
    if bounds.busy is None or not bounds.of_ns:
        worked = f"the GPU worked {time_text(bounds.gpu_ns)}{_LACKS[bounds.lacks or 'times']}"
        return f"What bounds the program is not known: {worked if bounds.gpu_ns else 'no GPU worked'}."
    where = "the steady state" if bounds.is_steady else "the time from first to last GPU work"
    per_step = (
        f"in {count_text(bounds.n_steps, bounds.step)} of {time_text(bounds.of_ns / bounds.n_steps)}, "
        if bounds.n_steps
        else f"of {time_text(bounds.of_ns)}, {where}, "
    )
    gpu = "the GPU" if bounds.n_gpus == 1 else f"GPU {bounds.gpu}, the busiest of {bounds.n_gpus},"
    if not bounds.by:
        works = f"{per_step}{gpu} works {percent_text(bounds.busy)}"
        return f"{works[0].upper()}{works[1:]}; why it waits is not known."
    name = bounds.cause[0].upper() + bounds.cause[1:]
    bound = "bound" if bounds.by == "copies" else "bounds"
    idle = 1 - bounds.busy
    most_of = "" if max(bounds.busy, idle) >= _ALL else "most of "
    works = f"{gpu} works {percent_text(bounds.busy)} and waits {percent_text(idle)}"
    return f"{name} {bound} {most_of}the program: {per_step}{works}."


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


def _host_sentence(bounds: Bounds) -> str:
    """The same of a program without a GPU, whose parts are of the host's time."""
    if bounds.host_ns < _LITTLE * bounds.imports_ns:
        took, ran = time_text(bounds.imports_ns), time_text(bounds.host_ns)
        return f"Imports took {took}, and all else that the program did {ran}: too little to say what bounds it."
    first, *others = [part for part in bounds.parts if part.share >= _LEAST_PART]
    name = first.name[0].upper() + first.name[1:]
    bound, verb = ("bound", "take") if first.name in _PLURALS else ("bounds", "takes")
    most_of = "" if first.share >= _ALL else "most of " if first.share > _MOST else "much of "
    steps = f"{count_text(bounds.n_steps, bounds.step)} of {time_text(bounds.of_ns / max(bounds.n_steps, 1))}"
    is_most = bounds.of_ns > _MOST * bounds.host_ns
    in_steps = f" ({steps})" if bounds.n_steps and is_most else ""
    beside = f" The {steps} took {time_text(bounds.of_ns)} of it." if bounds.n_steps and not is_most else ""
    takes = ", ".join(f"{part.name} {percent_text(part.share)}{_most_at(part)}" for part in others)
    return (
        f"{name} {bound} {most_of}the program, which uses no GPU{in_steps}: "
        f"of {time_text(bounds.host_ns)} on the host after imports, {first.name} {verb} {percent_text(first.share)}"
        f"{_most_at(first)}{', ' if takes else ''}{takes}.{beside}"
        f"{_INTERPRETED if first.name == 'interpreted kernels' else ''}"
    )


_INTERPRETED = " That is the time of bragg's interpreter, which executes kernels here instead of a GPU."
_PLURALS = ("operators", "interpreted kernels", "Python and native code")


def _most_at(part: Part) -> str:
    return f" (most at {part.at.rpartition('/')[2]})" if part.at else ""


def _parts_line(bounds: Bounds) -> Iterator[str]:
    if bounds.host_ns:
        return  # the sentence has them
    for title, is_gpu in (("The GPU works on", True), ("The GPU waits for", False)):
        parts = [part for part in bounds.parts if part.is_gpu is is_gpu and part.share >= _LEAST_PART]
        if not parts:
            continue
        texts = [f"{part.name} {percent_text(part.share)}" for part in parts[:_N_PARTS]]
        rest = sum(part.share for part in bounds.parts if part.is_gpu is is_gpu) - sum(
            part.share for part in parts[:_N_PARTS]
        )
        texts += [f"other {percent_text(rest)}"] if rest >= _LEAST_PART else []
        yield f"{title}: {', '.join(texts)}"
        if is_gpu and bounds.limits:
            yield from _limits_line(bounds.limits)


def _limits_line(limits: Limits) -> Iterator[str]:
    shares = {name: share for name, share in limits.named.items() if share >= _LEAST_PART}
    texts = [f"{name} {percent_text(share)} of its time" for name, share in shares.items()]
    if texts:
        how = "counters" if limits.is_measured else "the flops and bytes that the program states"
        yield f"What limits the GPU, by {how}: {', '.join(texts)}"


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
    yield from style.wrap(f"{indent}{_message(finding)}{'' if code else _at(finding)}{at}", _N_WRAPPED, indent)
    yield from _code_line(finding, code, indent, style)
    if finding.hint:
        yield from style.wrap(f"{indent}{advice_text(finding.hint)}", _N_WRAPPED, indent)


def _code_line(finding: Finding, code: str, indent: str, style: Style) -> Iterator[str]:
    """The line that a finding names with its text, cut to the width; none where that is not known."""
    if code:
        yield style.head(f"{indent}{place_text(finding)}  {printable(code.expandtabs(4))}", style.width)


def advice_text(hint: str) -> str:
    """A hint that introduces itself (`which: ...`) as it is."""
    introduces = ": " in hint and " " not in hint.partition(":")[0]
    return printable(f"{hint[0].upper()}{hint[1:]}" if introduces else f"Change: {hint}")


def _rest(
    bounds: Bounds, analysis: Analysis, worth: list[Finding], n_shown: int, least_gain: float, n_names: int
) -> Iterator[str]:
    """What is said beside the findings, in paragraphs."""
    if worth and bounds.is_estimate:
        yield "Counts and gains are estimates from sums over the run; bragg run --data trace measures them"
    if not worth and bounds.host_ns:
        yield NO_CAUSE
    elif not worth:
        yield "No rule found a cause." if analysis.findings or analysis.fine else "No rule could judge."
    yield from _about_gains(worth[:n_shown])
    nothing = [each.rule for each in analysis.findings if each.gain is not None and each.gain.is_nothing]
    more, small = len(worth) - n_shown, len(analysis.findings) - len(worth) - len(nothing)
    if more > 0:
        yield f"{count_text(more, 'more finding')}: bragg analyze --json shows all"
    if small:
        yield f"{count_text(small, 'finding')} below {percent_text(least_gain)}: --least-gain 0 shows them"
    later = _behind_the_host([each for each in analysis.findings if each not in worth])
    if later and n_names > _N_FEW_NAMES:
        share, finding = later
        yield f"Next, once the host keeps up: {finding.rule}, {percent_text(share)} of the GPU time{_at(finding)}"
        nothing = [rule for rule in nothing if rule != finding.rule]
    if nothing:
        yield f"Found, but a change would save nothing: {_names(list(dict.fromkeys(nothing)), n_names)}"
    if analysis.fine:
        yield f"Looked for and not found: {_names(analysis.fine, n_names)}"
    if not bounds.host_ns:  # else no option would tell more
        yield from _skipped(analysis, n_names)


def _about_gains(shown: Sequence[Finding]) -> Iterator[str]:
    """Why findings do not stand in the order of their gains, and that these do not add up."""
    shares = [each.gain.share for each in shown if each.gain is not None]
    order = "in this order, since a cause stands before what it explains in part, and what costs precision last"
    overlap = "the gains overlap, and do not add up"
    said = "; ".join([order] * _is_out_of_order(shown) + [overlap] * (sum(shares) > 1))
    yield from [said[0].upper() + said[1:]] if said else []


def _is_out_of_order(shown: Sequence[Finding]) -> bool:
    """Whether some finding saves more than one before it."""
    shares = [each.gain.share for each in shown if each.gain is not None and not each.gain.is_once]
    return shares != sorted(shares, reverse=True)


def _behind_the_host(hidden: list[Finding]) -> tuple[float, Finding] | None:
    """What takes most of the GPU's time among what gains little, because the host bounds the program: its share."""
    shares = {
        quantity.value: each
        for each in hidden
        for quantity in each.evidence
        if quantity.name == SHARE_OF_GPU and each.gain and each.gain.limit == "the host"
    }
    share = max(shares, default=0.0)
    return (share, shares[share]) if share >= _MUCH_BEHIND else None


def _skipped(analysis: Analysis, n_options: int) -> Iterator[str]:
    """The rules that could not judge, by the option of `bragg run` that they need, and those that none helps."""
    by_option = Counter(need.option for need in analysis.skipped.values() if need.option)
    by_need: dict[str, list[str]] = {}
    for rule, need in analysis.skipped.items():
        if not need.option and not need.is_of_program:
            by_need.setdefault(need.what, []).append(rule)
    if by_option:
        options = [option for option, _ in by_option.most_common()]
        yield f"More rules could judge a recording with {_names(options, n_options)}"
    if by_need:
        yield f"Could not judge: {'; '.join(f'{_first(rules)}, without {what}' for what, rules in by_need.items())}"


def _first(rules: list[str]) -> str:
    return rules[0] if len(rules) == 1 else f"{rules[0]} and {len(rules) - 1} more"


def _names(names: list[str], most: int) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and others"


def gain_text(finding: Finding) -> str:
    """What following a finding gains: a share of the steady state or of steps, or where it says so of the run."""
    if finding.gain is None:
        return "gain n/a"
    return f"{percent_text(finding.gain.share)}{OF_RUN * finding.gain.is_once}" if finding.gain.wall_ns else "no gain"


def place_text(finding: Finding) -> str:
    """File and line; empty where there is none."""
    return f"{short_path(finding.file)}:{finding.line}" if finding.file else ""


def _whole_place(finding: Finding) -> str:
    """The same as programs open it: the whole path, unless it is very long."""
    is_long = len(finding.file) > _BRIEF_MESSAGE
    return place_text(finding) if is_long or not finding.file else f"{printable(finding.file)}:{finding.line}"


def short_path(file: str) -> str:
    """A path from the package or from here, as editors open it; of others the last three parts."""
    for folder in ("site-packages/", "dist-packages/"):
        if folder in file:
            return printable(file.rpartition(folder)[2])
    here = f"{Path.cwd()}/"
    return printable(file.removeprefix(here) if file.startswith(here) else "/".join(file.split("/")[-3:]))


def _message(finding: Finding) -> str:
    return printable(finding.message)


def _at(finding: Finding) -> str:
    return f" ({place_text(finding)})" if finding.file else ""


def markdown_lines(answer: Answered, least_gain: float) -> Iterator[str]:
    """The answer as Markdown: a sentence and a table."""
    yield f"**{printable(answer.name)}** {bounds_sentence(answer.bounds)}".strip()
    found = answer.worth(least_gain)
    if found:
        yield ""
        yield "| gain | sure | finding | where | change |"
        yield "|---|---|---|---|---|"
    for finding in found:
        sure = finding.confidence.name.lower()
        place = f"{place_text(finding)} {_markdown_code(answer.code_of(finding))}".rstrip()
        cells = (gain_text(finding), sure, f"{finding.rule}: {finding.message}", place, finding.hint)
        yield f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _markdown_code(code: str) -> str:
    fence = "`` {} ``" if "`" in code else "`{}`"
    return fence.format(code) if code else ""


_BRIEF_BYTES = 2000
_BRIEF_MESSAGE = 160


def brief_json(answers: Sequence[Answered], least_gain: float) -> dict[str, Any]:
    """The answer in at most 2 kB: as many findings as fit, then as many profiles, and how many do not."""
    most = max((len(one.worth(least_gain)) for one in answers), default=0)
    shown = [*((len(answers), n) for n in range(most, -1, -1)), *((n, 0) for n in range(len(answers) - 1, -1, -1))]
    for n_profiles, n_findings in shown:
        values: dict[str, Any] = {"profiles": [_brief(one, least_gain, n_findings) for one in answers[:n_profiles]]}
        if n_profiles < len(answers):
            values["more"] = len(answers) - n_profiles
        if len(json.dumps(values).encode()) <= _BRIEF_BYTES:
            break
    return values


def _brief(answer: Answered, least_gain: float, n: int) -> dict[str, Any]:
    found = answer.worth(least_gain)
    return {
        "file": answer.name[-_BRIEF_MESSAGE:],
        "bound": answer.bounds.cause,
        "gpu_busy": None if answer.bounds.busy is None else round(answer.bounds.busy, 3),
        "step_ms": round(answer.bounds.of_ns / answer.bounds.n_steps / 1e6, 3) if answer.bounds.n_steps else None,
        "findings": [
            {
                "rule": finding.rule,
                "gain": None if finding.gain is None else round(finding.gain.share, 4),
                "confidence": finding.confidence.name.lower(),
                "at": _whole_place(finding) or finding.kernel[:_BRIEF_MESSAGE],
                "message": shorten(printable(finding.message), _BRIEF_MESSAGE, placeholder=" …"),
                "change": shorten(printable(finding.hint), _BRIEF_MESSAGE, placeholder=" …"),
            }
            for finding in found[:n]
        ],
        "more": len(found) - min(n, len(found)),
        "next": f"bragg analyze {quote(answer.name) if 0 < len(answer.name) <= _BRIEF_MESSAGE else 'FILE'} --json",
    }
