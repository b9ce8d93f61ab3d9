"""What an analysis says below its findings: what else was found, looked for, or could not be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bragg.analyze.causes.bounds import Bounds
from bragg.analyze.causes.work_finding import SHARE_OF_GPU
from bragg.analyze.engine import Analysis
from bragg.model import Finding
from bragg.model.finding import percent_text
from bragg.views.text.finding_text import at_place
from bragg.views.text.units import count_text

# Rules of a list that are named, and where lines are few; --json names all.
N_NAMES, N_FEW_NAMES = 8, 2
_NO_CAUSE = "No rule found a cause; most rules are for programs that use a GPU."
_NO_CAUSE_IN_CODE = "No rule found a cause in the code of its kernels; rules about times of a GPU were not asked."
# Of the GPU's time: less is not worth a line before the host keeps up.
_MUCH_BEHIND = 0.05


def below_findings(
    bounds: Bounds, analysis: Analysis, worth: list[Finding], n_shown: int, least_gain: float, n_names: int
) -> Iterator[str]:
    """What is said beside the findings, in paragraphs."""
    if worth and bounds.is_estimate:
        yield "Counts and gains are estimates from sums over the run; bragg run --data trace measures them"
    if not worth and bounds.host_ns:
        yield no_cause(bounds)
    elif not worth:
        yield "No rule found a cause." if analysis.findings or analysis.fine else "No rule could judge."
    yield from about_gains(worth[:n_shown])
    nothing = [each.rule for each in analysis.findings if each.gain is not None and each.gain.is_nothing]
    more, small = len(worth) - n_shown, len(analysis.findings) - len(worth) - len(nothing)
    if more > 0:
        yield f"{count_text(more, 'more finding')}: bragg analyze --json shows all"
    if small:
        yield f"{count_text(small, 'finding')} below {percent_text(least_gain)}: --least-gain 0 shows them"
    later = _behind_the_host([each for each in analysis.findings if each not in worth])
    if later and n_names > N_FEW_NAMES:
        share, finding = later
        yield f"Next, once the host keeps up: {finding.rule}, {percent_text(share)} of the GPU time{at_place(finding)}"
        nothing = [rule for rule in nothing if rule != finding.rule]
    if nothing:
        yield f"Found, but a change would save nothing: {_names(list(dict.fromkeys(nothing)), n_names)}"
    if analysis.fine:
        yield f"Looked for and not found: {_names(analysis.fine, n_names)}"
    if not bounds.host_ns:  # else no option would tell more
        yield from _skipped(analysis, n_names)


def no_cause(bounds: Bounds) -> str:
    """What is said where no rule finds one in a program without a GPU."""
    return _NO_CAUSE_IN_CODE if bounds.for_target else _NO_CAUSE


def about_gains(shown: Sequence[Finding]) -> Iterator[str]:
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
