"""The text and the JSON of a comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.analyze.comparing.disturbance import may_be_starved
from bragg.analyze.comparing.gates import Verdict
from bragg.analyze.comparing.launches import Launches
from bragg.analyze.comparing.per_turn import Loop
from bragg.analyze.comparing.program_time import ProgramTime
from bragg.analyze.comparing.repeats import FALSE_ALARMS
from bragg.analyze.comparing.same_kernels import SameKernels
from bragg.model import FrameKind, FrameTable
from bragg.model.ids import ROOT, FrameId, NodeId
from bragg.model.table import BoolArray
from bragg.views.text.folding_rules import library_of
from bragg.views.text.labels import Labels
from bragg.views.text.style import Style
from bragg.views.text.units import Scale, count_text, scale_for, share_text, value_text

_LEAST_PATH_WIDTH = 20
_WIDEST_PATH = 100  # columns, where no terminal says how many there are
_MOST_OF_CALLER, _OWN_OF_CALLER = 0.5, 0.05
"""Of a caller's change: a row below with more than the first tells it, if less than the second is the caller's own."""
_VANISHED = 0.005  # of the value before: -99.5 %, of which percents tell little
_FEW = 10
# A narrow terminal has no room for averages.
_N_NARROW = 6
_HEADERS = ("change", "relative", "noise", "before", "after", "count", "avg before", "avg after")


def diff_lines(
    comparison: Comparison, style: Style, max_rows: int | None, starved: float = 0.0, total: Verdict | None = None
) -> list[str]:
    """The change of the whole, then a table of rows, and what it does not show.

    Args:
        comparison: What to show.
        style: How to decorate.
        max_rows: Rows of the table; None for all.
        starved: As in `step_text`.
        total: The change of the whole without the time in which others had the core; None: others hardly had it.
    """
    changed = _telling(comparison, [row for row in comparison.rows.tolist() if comparison.change[row]])
    shown = changed[:max_rows]
    head = _head_text(comparison, starved, total)
    if not shown:
        return [style.bold(head), style.dim("no difference")]
    texts = _Texts(comparison, shown)
    n_columns = _N_NARROW if style.is_narrow else len(_HEADERS)
    cells = _without_empty_columns([row[:n_columns] for row in (texts.header(), *map(texts.cells, shown))])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numbers = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    room = None if style.width is None else max(style.width - len(numbers[0]) - 2, _LEAST_PATH_WIDTH)
    lines = [f"{text}  {path_text(comparison, row, style, room)}" for text, row in zip(numbers[1:], shown, strict=True)]
    n_hidden = len(changed) - len(shown)
    more = [style.dim(f"{count_text(n_hidden, 'row')} not shown; --lines 0 shows all")] if n_hidden else []
    return [style.bold(head), "", style.bold(f"{numbers[0]}  name"), *lines, *more]


def _head_text(comparison: Comparison, starved: float, total: Verdict | None) -> str:
    """The change of the whole."""
    what = " ".join(filter(None, (comparison.metric, comparison.of)))
    if total is not None:
        return f"{what}: {step_text(total)}{_taken_text(total)}{_runs_text(comparison)}; the rows include that time"
    text = f"{what}: {change_text(comparison, ROOT)}{_runs_text(comparison)}"
    if starved and comparison.metric == "host_time" and comparison.n_before == comparison.n_after == 1:
        text += _starved_text(starved, float(comparison.before[ROOT]), float(comparison.after[ROOT]))
    return text


def _telling(comparison: Comparison, rows: Sequence[NodeId]) -> list[NodeId]:
    """Rows without callers that add nothing of their own, and most of whose change is that of one row below them."""
    change, above = comparison.change, comparison.tree.parent[1:]
    below = np.bincount(above, weights=change[1:], minlength=len(change))
    most = np.zeros(len(change))
    np.maximum.at(most, above, change[1:] * np.sign(change[above]))
    goes_on = (most > _MOST_OF_CALLER * np.abs(change)) & (np.abs(change - below) < _OWN_OF_CALLER * np.abs(change))
    return [row for row in rows if not goes_on[row]]


def diff_json(comparison: Comparison, max_rows: int | None) -> dict[str, Any]:
    """JSON values: the same, with unchanged rows."""
    return {
        "metric": {"name": comparison.metric, "unit": comparison.unit},
        "n_before": comparison.n_before,
        "n_after": comparison.n_after,
        "is_paired": comparison.is_paired,
        "total": _json_row(comparison, ROOT),
        "rows": [_json_row(comparison, row) for row in comparison.rows[:max_rows].tolist()],
    }


def change_text(comparison: Comparison, node: NodeId) -> str:
    """`310 us before, 320 us after: +10.0 us (+3.2 %)`, of several runs with the interval of the change."""
    before, after = float(comparison.before[node]), float(comparison.after[node])
    text = values_text(before, after, comparison.unit)
    if comparison.n_before == comparison.n_after == 1:
        return text
    return text + _interval_text(before, after, float(comparison.spread.margin()[node]), 1 - 2 * FALSE_ALARMS)


def judged_text(verdict: Verdict) -> str:
    """The metric, its values and the interval of the change at a gate, and how many more rows are over the limit."""
    if verdict.at_most is not None:
        after, most = (value_text(value, verdict.unit) for value in (verdict.after, verdict.at_most))
        steps = f", mean of {count_text(verdict.calls_after, 'step')}" if verdict.calls_after else ""
        return f"{verdict.metric} {after}{steps}, at most {most}"
    more = f"; {verdict.n_exceeded - 1} more" if verdict.n_exceeded > 1 else ""
    return f"{verdict.metric} {step_text(verdict)}{_taken_text(verdict)}{more}"


def _taken_text(verdict: Verdict) -> str:
    """`, without 38.0 ms and 7.10 ms in which other programs had the core`; empty where nothing was left out."""
    if not any(verdict.taken):
        return ""
    before, after = (value_text(taken, verdict.unit) for taken in verdict.taken)
    return f", without {before} and {after} in which other programs had the core"


def launches_text(launches: Launches, frames: FrameTable) -> str:
    """How often a kernel was launched before and after, and how long a launch took.

    Args:
        launches: Of the kernel.
        frames: Of the comparison.
    """
    name = Labels(frames).text(launches.frame)
    counts = f"{launches.before:,} times before and {launches.after:,} times after"
    means = values_text(launches.mean_before_ns, launches.mean_after_ns, "ns")
    return f"{name} was launched {counts}, and a launch took {means}: sums do not tell which run is faster"


def loop_text(loop: Loop) -> str:
    """That rows are of a turn of a loop, and how many turns there were."""
    counts = f"{loop.before:,.0f} times before and {loop.after:,.0f} times after"
    return f"rows are of a turn of the loop at {loop.place}, which ran {counts}; what is outside of it is left out"


def same_kernels_text(found: SameKernels) -> str:
    """That kernels which should take as long do not, and what else it may be than the change of the program."""
    change = f"{share_text(abs(found.change))} {'more' if found.change > 0 else 'less'}"
    took = f"{found.count} kernels that both sides launched in the same shape took {change} each"
    return f"{took}: this much may be the machine's (clocks, another program), not the change's"


def program_lines(time: ProgramTime) -> list[str]:
    """How long the programs took, and whether the time of their GPUs decides that."""
    lines = [f"the program: {step_text(time.wall)}"]
    if time.steady_ns:
        before, after = (value_text(value, "ns") for value in time.steady_ns)
        waits = " and ".join(share_text(share) for share in time.waits)
        decides = ": gpu_time does not decide how long they take" * time.is_of_host
        lines.append(f"the steady state: {before} before, {after} after; the GPU waits for {waits} of it{decides}")
    return lines


def step_text(verdict: Verdict, starved: float = 0.0) -> str:
    """The values and the interval of the change, and how many steps they are of.

    Args:
        verdict: On a step, or on a gate.
        starved: For how much of its time the main thread of a run had no core, 0 to 1: more than the usual noise.
    """
    values = f"{values_text(verdict.before, verdict.after, verdict.unit)}{_calls_text(verdict)}"
    if starved and verdict.is_one_run_each:
        return values + _starved_text(starved, verdict.before, verdict.after)
    if verdict.is_one_run_each:
        largest = max(verdict.before, verdict.after)
        noise = share_text(verdict.margin / largest) if largest and verdict.margin else ""
        return f"{values}; one run each, assumed to vary by up to {noise}" if noise else values
    return values + _interval_text(verdict.before, verdict.after, verdict.margin, verdict.confidence)


def _starved_text(share: float, before: float, after: float) -> str:
    """The lack of a core, and whether that may be all of the difference."""
    lack = f"the main thread of one had no core for {share_text(share)} of its time"
    if not may_be_starved(before, after, share):
        return f"; one run each, and {lack}: that alone does not explain the difference"
    return f"; one run each, and {lack}: they do not tell what the change does"


def _calls_text(verdict: Verdict) -> str:
    """What of the values are means of; empty where they are none."""
    if not verdict.calls_before and not verdict.calls_after:
        return ""
    if verdict.calls_before == verdict.calls_after:
        return f", mean of {count_text(verdict.calls_before, 'step')} each"
    return f", mean of {verdict.calls_before:,} and {count_text(verdict.calls_after, 'step')}"


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """JSON values of a verdict."""
    return {
        "gate": str(verdict.gate),
        "metric": {"name": verdict.metric, "unit": verdict.unit},
        "before": verdict.before,
        "after": verdict.after,
        "margin": verdict.margin,
        "confidence": verdict.confidence,
        "n_exceeded": verdict.n_exceeded,
        "is_undecided": verdict.is_undecided,
        "n_calls": [verdict.calls_before, verdict.calls_after],
        "at_most": verdict.at_most,
        "taken": list(verdict.taken),
    }


def named_frames(frames: FrameTable, name: str) -> BoolArray:
    """Frames that are called so, in any spelling; `*` stands for any characters: [n_frames]."""
    labels = Labels(frames)
    pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    spellings = ((*labels.spellings(frame), labels.name(frame)) for frame in map(FrameId, range(len(frames))))
    return np.array([any(map(pattern.fullmatch, texts)) for texts in spellings], np.bool_)


def values_text(before: float, after: float, unit: str) -> str:
    """`310 us before, 320 us after: +10.0 us (+3.2 %)`."""
    texts = [value_text(value, unit) for value in (before, after, after - before)]
    return f"{texts[0]} before, {texts[1]} after: {'+' * (after > before)}{texts[2]} ({_share_text(before, after)})"


def _interval_text(before: float, after: float, margin: float, confidence: float) -> str:
    """`, 99 % interval -1.2 % to +7.6 %`; empty for what is new or counted exactly."""
    if not before or not margin:
        return ""
    low, high = ((after - before + shift) / before for shift in (-margin, margin))
    if low <= -1:  # nothing takes less than no time
        return f", {100 * confidence:.4g} % interval up to {_signed_share(high)}: these runs vary too much to tell"
    return f", {100 * confidence:.4g} % interval {_signed_share(low)} to {_signed_share(high)}"


def _runs_text(comparison: Comparison) -> str:
    n_before, n_after = comparison.n_before, comparison.n_after
    if n_before == n_after == 1:
        return ""
    runs = f"{n_before} runs each" if n_before == n_after else f"{n_before} runs before, {n_after} after"
    return f"; {runs}{', in turn' * comparison.is_paired}"


def _noise_text(comparison: Comparison, node: NodeId) -> str:
    """Half the width of the interval as a share of the value before; empty for one run each and for what is new."""
    if comparison.n_before == comparison.n_after == 1 or not comparison.before[node]:
        return ""
    return f"± {share_text(float(comparison.spread.margin()[node] / comparison.before[node]))}"


def path_text(comparison: Comparison, node: NodeId, style: Style, room: int | None) -> str:
    """The callers of a node and itself.

    Where there is no room, the outermost are left out, then those between the program's own function and the node.
    """
    names, room = _names(comparison, node), room or _WIDEST_PATH
    last, own = len(names) - 1, _own_function(comparison, node)
    shown = [names, *([style.ellipsis, *names[at:]] for at in range(1, own + 1))]
    shown += [[style.ellipsis, names[own], style.ellipsis, *names[at:]] for at in range(own + 2, last + 1)]
    shown += [[style.ellipsis, names[-1]]] if last else []
    texts = [style.arrow.join(each) for each in shown]
    return style.cut(next((text for text in texts if style.width_of(text) <= room), texts[-1]), room)


def _own_function(comparison: Comparison, node: NodeId) -> int:
    """Where in a path the innermost function of the program is that is of no library; the last, where none is."""
    tree, frames = comparison.tree, comparison.tree.frames
    path = [tree.frame_of(step) for step in tree.path(node)[1:]]
    own = [at for at, frame in enumerate(path) if frames.kind[frame] == FrameKind.PYTHON]
    return next((at for at in reversed(own) if not library_of(frames.file[path[at]])), max(len(path) - 1, 0))


class _Texts:
    """The numbers of rows, each column in one unit."""

    def __init__(self, comparison: Comparison, rows: Sequence[NodeId]) -> None:
        self._of = comparison
        self._averages = [
            np.divide(values, counts, out=np.full(len(values), np.nan), where=counts > 0)
            for values, counts in (
                (comparison.before, comparison.count_before),
                (comparison.after, comparison.count_after),
            )
        ]
        self._change = _scale(comparison, comparison.change[list(rows)])
        self._value = _scale(comparison, np.append(comparison.before[list(rows)], comparison.after[list(rows)]))
        self._average = _scale(comparison, np.concatenate([averages[list(rows)] for averages in self._averages]))

    def header(self) -> list[str]:
        units = [self._change.unit, "", "", self._value.unit, self._value.unit, "", *[self._average.unit] * 2]
        return [f"{name} {unit}".rstrip() for name, unit in zip(_HEADERS, units, strict=True)]

    def cells(self, row: NodeId) -> list[str]:
        of = self._of
        change = self._change.text(float(of.change[row]))
        return [
            f"+{change}" if of.change[row] > 0 else change,
            _relative_text(of, row),
            _noise_text(of, row),
            self._value.text(float(of.before[row])),
            self._value.text(float(of.after[row])),
            _count_text(float(of.count_before[row]), float(of.count_after[row])),
            *(self._average.text(float(averages[row])) for averages in self._averages),
        ]


def _without_empty_columns(cells: list[list[str]]) -> list[list[str]]:
    columns = [column for column in zip(*cells, strict=True) if any(column[1:])]
    return [list(row) for row in zip(*columns, strict=True)]


def _scale(comparison: Comparison, values: Any) -> Scale:
    return scale_for(comparison.unit, float(np.nanmax(np.abs(values), initial=0.0)))


def _relative_text(comparison: Comparison, node: NodeId) -> str:
    return _share_text(float(comparison.before[node]), float(comparison.after[node]))


def _share_text(before: float, after: float) -> str:
    if not before:
        return "new" if after else _signed_share(0.0)
    if 0 < after < _VANISHED * before:
        return f"{before / after:,.0f} times less"
    return "gone" if not after else _signed_share((after - before) / before)


def _signed_share(share: float) -> str:
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{share_text(abs(share))}"


def _count_text(before: float, after: float) -> str:
    texts = ["" if math.isnan(count) else _number_text(count) for count in (before, after)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0] or 0} > {texts[1] or 0}"


def _number_text(count: float) -> str:
    """A count; of what some turns do, a part of one."""
    return f"{count:,.0f}" if count == round(count) or count >= _FEW else f"{count:.2g}"


def _names(comparison: Comparison, node: NodeId) -> list[str]:
    labels = Labels(comparison.tree.frames)
    return [labels.text(comparison.tree.frame_of(step)) for step in comparison.tree.path(node)[1:]] or ["total"]


def _json_row(comparison: Comparison, node: NodeId) -> dict[str, Any]:
    frames = comparison.tree.frames
    frame = comparison.tree.frame_of(node)
    relative = comparison.relative(node)
    return {
        "path": _names(comparison, node),
        "full_name": Labels(frames).full_name(frame),
        "kind": FrameKind(int(frames.kind[frame])).name.lower(),
        "before": float(comparison.before[node]),
        "after": float(comparison.after[node]),
        "change": float(comparison.change[node]),
        "relative": None if math.isinf(relative) else relative,
        "margin": float(comparison.spread.margin()[node]),
        "count_before": _or_none(float(comparison.count_before[node])),
        "count_after": _or_none(float(comparison.count_after[node])),
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
