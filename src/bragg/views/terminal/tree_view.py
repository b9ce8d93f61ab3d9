"""A profile as a tree of call paths, hottest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bragg.errors import NothingRecorded
from bragg.model import CallTree, FrameKind, MetricKind, Profile
from bragg.model.ids import NodeId
from bragg.model.meta.run import Run
from bragg.model.table import BoolArray, FloatArray
from bragg.views.terminal.columns import Column, ColumnChoice
from bragg.views.terminal.filters import filter_paths
from bragg.views.terminal.json_values import json_columns, json_frame, json_values
from bragg.views.terminal.outline import Outline, OutlineRow, outline
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.folding import FoldedProfile, fold_libraries
from bragg.views.text.labels import Labels
from bragg.views.text.repeats import with_repeats_folded
from bragg.views.text.style import printable
from bragg.views.text.units import share_text
from bragg.views.text.variants import with_one_variant

# Of the whole: less outside of all paths is not missed.
_MUCH_OUTSIDE = 0.05


@dataclass(frozen=True, eq=False)
class TreeView:
    """Rows of a tree, to be written as text or as JSON.

    Attributes:
        folded: What is shown.
        columns: Metrics; the first has shares.
        outline: The chosen rows.
        labels: Names of the frames.
        notes: What filters left out, one line each.
    """

    folded: FoldedProfile
    columns: list[Column]
    outline: Outline
    labels: Labels
    notes: list[str]

    @property
    def tree(self) -> CallTree:
        """The tree that the rows are of."""
        return self.folded.profile.tree

    def walk(self) -> Iterator[tuple[OutlineRow, int | None]]:
        """The rows from the first to the last, each with the node that it hangs below."""
        pending: list[tuple[OutlineRow, int | None]] = [(self.outline.root, None)]
        while pending:
            row, parent = pending.pop()
            yield row, parent
            pending.extend((child, row.nodes[-1]) for child in reversed(row.children))

    def to_json(self) -> dict[str, Any]:
        """JSON values: rows in the order of the text, each with the id of its parent."""
        return {
            "metrics": json_columns(self.columns),
            "rows": list(self._json_rows()),
            "hidden_call_paths": self.outline.n_hidden,
            "notes": self.notes,
        }

    def _json_rows(self) -> Iterator[dict[str, Any]]:
        inputs = _inputs_by_node(self.folded.profile)
        for row, parent in self.walk():
            for above, node in zip((parent, *row.nodes[:-1]), row.nodes, strict=True):
                yield {
                    "id": node,
                    "parent": above,
                    **json_frame(self.labels, self.tree.frame_of(node)),
                    "folded_frames": int(self.folded.n_folded[node]),
                    **json_values(self.columns, node),
                    **({"inputs": inputs[node]} if node in inputs else {}),
                }


def _inputs_by_node(profile: Profile) -> dict[int, list[dict[str, int]]]:
    """Which operators made the inputs of each operator: rows of `Profile.inputs`, by the id of the row."""
    found: dict[int, list[dict[str, int]]] = {}
    names = profile.inputs.columns()
    for node, *values in zip(*(getattr(profile.inputs, name).tolist() for name in names), strict=True):
        found.setdefault(node, []).append(dict(zip(tuple(names)[1:], values, strict=True)))
    return found


def tree_view(profile: Profile, options: ViewOptions, before: Profile | None = None) -> TreeView:
    """Choose what is shown of a profile.

    Args:
        profile: What to show.
        options: How.
        before: The same call tree with other numbers, which are subtracted; None to show the numbers as they are.

    Raises:
        UsageError: An unknown metric, a malformed expression.
        NothingRecorded: Nothing matches, or what matches has no value of the metric.
    """
    choice = ColumnChoice.of(profile, options.metrics, ("time", "count"), options.sort, options.formulas)
    folded, notes = _folded(profile, options, choice.sort)
    sort, *columns = _columns(folded.profile, choice)
    if before is not None:
        before_columns = _columns(_folded(before, options, choice.sort)[0].profile, choice)
        sort, *columns = (one.minus(other) for one, other in zip((sort, *columns), before_columns, strict=True))
    tree = folded.profile.tree
    weight = _weight(tree, sort)
    if not weight[0]:
        if before is None:
            raise NothingRecorded(
                f"nothing to show: {choice.sort} is zero everywhere", hint="Choose another with --metric"
            )
        notes = [*notes, f"{choice.sort} is the same everywhere"]
    labels = Labels(tree.frames, options.full_names, options.code)
    rows = outline(
        tree,
        weight,
        foldable=_foldable(folded, options),
        least=max(options.threshold * float(weight[0]), options.least),
        max_depth=options.max_depth,
        max_lines=options.max_lines,
        order=_by_name(tree, labels) if options.sort == "name" else None,
    )
    notes = [*notes, *_outside_note(tree, sort), *_guess_notes(profile.run, choice.names)]
    return TreeView(folded, columns, rows, labels, notes)


def _folded(profile: Profile, options: ViewOptions, metric: str) -> tuple[FoldedProfile, list[str]]:
    """A filtered profile with its libraries folded, and notes about what was left out."""
    filtered = filter_paths(profile, options.include, options.exclude, metric)
    named = filtered.profile if options.full_names else with_one_variant(filtered.profile)
    if not options.fold:
        return FoldedProfile.unfolded(named), filtered.notes
    return with_repeats_folded(fold_libraries(named, options.keep), metric), filtered.notes


def _columns(profile: Profile, choice: ColumnChoice) -> list[Column]:
    """The column that rows are chosen by, and those that are shown."""
    return [choice.sort_column(profile), *choice.columns(profile)]


def _weight(tree: CallTree, column: Column) -> FloatArray:
    """Values that never grow downwards: of metrics that do not add up, the largest at or below each node."""
    weight = np.abs(np.nan_to_num(column.values))
    return weight if column.kind is MetricKind.INCLUSIVE else tree.largest_below(weight)


def _outside_note(tree: CallTree, column: Column) -> Iterator[str]:
    """Host time in no path below the root, which has no row of its own."""
    values = np.nan_to_num(column.values)
    outside = float(values[0] - values[tree.parent == 0].sum())
    if column.name == "host_time" and len(tree) > 1 and outside >= _MUCH_OUTSIDE * values[0] > 0:
        yield f"{share_text(outside / float(values[0]))} of host_time is code between these paths, outside of any scope"


def _foldable(folded: FoldedProfile, options: ViewOptions) -> BoolArray:
    return np.equal(folded.profile.tree.kind, FrameKind.PYTHON) & options.fold


def _by_name(tree: CallTree, labels: Labels) -> Callable[[NodeId], str]:
    return lambda node: labels.text(tree.frame_of(node))


def _guess_notes(run: Run, names: Sequence[str]) -> list[str]:
    """Which of the shown metrics are added up although the file does not say that they may be."""
    shown = [name for name in names if name.partition("[")[0] in run.assumed_inclusive]
    return (
        [f"the file does not say how {printable(', '.join(shown))} add up: shown with what is below"] if shown else []
    )
