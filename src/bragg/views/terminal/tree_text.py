"""The text of a tree view."""

from __future__ import annotations

from collections.abc import Iterator

from bragg.model import MetricKind
from bragg.model.ids import NodeId
from bragg.views.terminal.columns import absence_notes
from bragg.views.terminal.number_table import NumberTable
from bragg.views.terminal.outline import OutlineRow
from bragg.views.terminal.tree_view import TreeView
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, share_text

# Longer chains of callers keep their ends.
_MAX_CHAIN = 4
_LEAST_LABEL_WIDTH = 16


def tree_lines(view: TreeView, style: Style) -> list[str]:
    """Column headers, one line for each row, and what is not shown."""
    return list(_TreeText(view, style).lines())


class _TreeText:
    def __init__(self, view: TreeView, style: Style) -> None:
        self._view = view
        self._style = style
        self._numbers = NumberTable(view.columns, [row.nodes[0] for row, _ in view.walk()], style)

    def lines(self) -> Iterator[str]:
        yield self._style.bold(f"{self._numbers.header()}  call path")
        yield from self._row_lines()
        shown = [node for row, _ in self._view.walk() for node in row.nodes[:1]]
        notes = [*self._view.notes, *absence_notes(self._view.columns, shown), *self._hidden_notes()]
        yield from map(self._style.dim, self._style.paragraphs(notes))

    def _row_lines(self) -> Iterator[str]:
        """The rows, and behind the children of a row the number of those that are hidden."""
        # A row or the text that counts hidden ones, the tree lines in front of it, those in front of what is below.
        pending: list[tuple[OutlineRow | str, str, str]] = [(self._view.outline.root, "", "")]
        while pending:
            row, branch, stem = pending.pop()
            if isinstance(row, str):
                yield " " * self._numbers.width + self._style.dim(f"  {branch}{row}")
                continue
            yield f"{self._numbers.text(row.nodes[0])}  {self._style.dim(branch)}{self._label(row, len(branch))}"
            below: list[OutlineRow | str] = [*row.children]
            if row.children and row.n_hidden:
                below.append(self._more(row))
            for item in reversed(below):
                is_last = item is below[-1]
                pending.append((item, stem + self._style.branch(is_last), stem + self._style.stem(is_last)))

    def _label(self, row: OutlineRow, indent: int) -> str:
        """The chain of callers of a row, cut to what is left of the line."""
        parts = [self._node_label(node) for node in row.nodes]
        if len(parts) > _MAX_CHAIN:
            left_out = f"{self._style.ellipsis} {count_text(len(parts) - 2, 'caller')} {self._style.ellipsis}"
            parts = [parts[0], (left_out, ""), parts[-1]]
        more = f"  {self._more(row)}" if row.n_hidden and not row.children else ""
        plain = self._style.arrow.join(f"{name} {place}".rstrip() for name, place in parts)
        room = self._room(indent + len(more))
        if room is not None and self._style.width_of(plain) > room:
            return self._style.cut(plain, room) + self._style.dim(more)
        painted = (f"{name} {self._style.dim(place)}" if place else name for name, place in parts)
        return self._style.arrow.join(painted) + self._style.dim(more)

    def _room(self, taken: int) -> int | None:
        """Columns for a label beside the numbers and what else is on its line; None without limit."""
        if self._style.width is None or self._view.labels.full:
            return None
        return max(self._style.width - self._numbers.width - 2 - taken, _LEAST_LABEL_WIDTH)

    def _node_label(self, node: NodeId) -> tuple[str, str]:
        """Name and place."""
        labels, folded, tree = self._view.labels, self._view.folded, self._view.tree
        name = folded.name(node, labels)
        if self._style.is_narrow and node:
            name = _beyond(name, folded.name(NodeId(int(tree.parent[node])), labels))
        return name, labels.place(tree.frame_of(node))

    def _more(self, row: OutlineRow) -> str:
        return f"{self._style.ellipsis} {row.n_hidden:,} more"

    def _hidden_notes(self) -> Iterator[str]:
        outline, first = self._view.outline, self._view.columns[0]
        if outline.n_hidden:
            hidden = f"{count_text(outline.n_hidden, 'call path')} not shown"
            if outline.is_cut:
                yield f"{hidden}; --lines 0 shows all"
            elif outline.is_deep:
                yield f"{hidden}, whose time rows above them include; a larger --depth shows more"
            elif first.kind is MetricKind.INCLUSIVE:
                share = first.values[outline.hidden_tops].sum() / first.total
                yield f"{hidden}, {share_text(share)} of {printable(first.name)}"
            else:
                yield hidden
        if self._view.folded.n_folded.any():
            yield "[library: name] stands for frames of a library; --no-fold shows them"


def _beyond(name: str, caller: str) -> str:
    """A name without that of its caller, where it begins with it, as those of PyTorch's modules do: `.layers`."""
    begin = caller.partition(" (")[0]
    return name[len(begin) :] if name.startswith(f"{begin}.") else name
