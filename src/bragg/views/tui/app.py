"""The application: a tree that grows where it is opened, a search, and the source of what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.syntax import Syntax
from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, Static, Tree
from textual.widgets.tree import TreeNode

from bragg.model.ids import ROOT, NodeId
from bragg.views.text.style import printable
from bragg.views.tui.rows import TreeRows

_LINES_BEFORE, _LINES_AFTER = 8, 60
_HOT, _WARM = 0.5, 0.1


class ProfileApp(App[None]):  # type: ignore[misc]
    """Shows the call tree of a profile.

    Args:
        rows: What it shows.
        title: What stands above it.
        read_source: The text of a source file by its name; None when there is none.
    """

    CSS = """
    #head { height: 1; background: $panel; padding: 0 1; }
    #tree { width: 2fr; }
    #source { width: 1fr; border-left: solid $panel; display: none; }
    .with-source #source { display: block; }
    #query { display: none; height: 1; border: none; }
    .searching #query { display: block; }
    #note { height: 1; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar = [
        ("s", "sort", "sort by the next"),
        ("slash", "search", "search"),
        ("n", "step(1)", "next match"),
        ("N", "step(-1)", "previous match"),
        ("e", "expand_hottest", "open the hottest path"),
        ("c", "collapse", "close all"),
        ("o", "source", "source"),
        ("escape", "leave_search", ""),
        ("q", "quit", "quit"),
    ]
    TITLE = "bragg"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, rows: TreeRows, title: str, read_source: Callable[[str], str | None]) -> None:
        super().__init__()
        self._rows = rows
        self._shown_title = printable(title)
        self._read_source = read_source
        self._row_of: dict[NodeId, TreeNode[NodeId]] = {}
        self._found: list[NodeId] = []
        self._at = -1

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static(id="head", markup=False)
        with Horizontal():
            yield Tree(self._label(ROOT), data=ROOT, id="tree")
            with VerticalScroll(id="source"):
                yield Static(id="code", markup=False)
        yield Static(id="note", markup=False)
        yield Input(placeholder="text or /expression/", id="query")
        yield Footer()

    def on_mount(self) -> None:
        """Show the first two levels."""
        self._tree.guide_depth = 2
        self._tree.focus()
        self._plant()

    @property
    def _tree(self) -> Tree[NodeId]:
        return self.query_one("#tree", Tree)

    def _plant(self) -> None:
        """Begin the tree anew, with what was open before."""
        opened = [node for node, row in self._row_of.items() if row.is_expanded] or [ROOT]
        chosen = self.chosen
        self._row_of = {ROOT: self._tree.root}
        self._tree.root.remove_children()
        for node in sorted(opened):
            if node in self._row_of:
                self._open(node)
        self._reveal(chosen)
        self.query_one("#head", Static).update(f"{self._shown_title}: {self._rows.header()}")

    @property
    def chosen(self) -> NodeId:
        """The node under the cursor."""
        row = self._tree.cursor_node
        return row.data if row is not None and row.data is not None else ROOT

    def _label(self, node: NodeId) -> Text:
        share = self._rows.share(node)
        numbers = Text(self._rows.numbers(node), "red" if share >= _HOT else "yellow" if share >= _WARM else "")
        file, line = self._rows.place(node)
        place = f"  {file.rpartition('/')[2]}:{line}" if file else ""
        return Text.assemble(numbers, "  ", self._rows.name(node), (printable(place), "dim"))

    def _open(self, node: NodeId) -> None:
        row = self._row_of[node]
        self._fill(row)
        row.expand()

    def _fill(self, row: TreeNode[NodeId]) -> None:
        """Add what is below a row, once."""
        if row.children or row.data is None:
            return
        for child in self._rows.children(row.data):
            label = self._label(child)
            self._row_of[child] = row.add(label, child, allow_expand=self._rows.has_children(child))

    def _reveal(self, node: NodeId) -> None:
        """Open what is above a node, and go to it."""
        for above in self._rows.path(node)[:-1]:
            if above in self._row_of:
                self._open(above)
        if node in self._row_of:
            self.call_after_refresh(self._tree.move_cursor, self._row_of[node])

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[NodeId]) -> None:
        """Children are added when they are first seen."""
        self._fill(event.node)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[NodeId]) -> None:
        """The source pane follows the cursor."""
        if event.node.data is not None and self.has_class("with-source"):
            self._show_source(event.node.data)

    def _show_source(self, node: NodeId) -> None:
        file, line = self._rows.place(node)
        text = self._read_source(file) if file else None
        code = self.query_one("#code", Static)
        if text is None:
            code.update(Text(printable(f"{file} cannot be read here" if file else "no source"), "dim"))
            return
        lines = (max(line - _LINES_BEFORE, 1), line + _LINES_AFTER)
        lexer = "python" if file.endswith(".py") else "c++"
        code.update(
            Syntax(text, lexer, line_numbers=True, line_range=lines, highlight_lines={line}, background_color="default")
        )

    def _say(self, text: str) -> None:
        self.query_one("#note", Static).update(printable(text))

    def action_sort(self) -> None:
        """Order by the next column."""
        self._rows.next_sort()
        self._plant()

    def action_expand_hottest(self) -> None:
        """Open the hottest path below the cursor."""
        self._reveal(self._rows.hottest_path(self.chosen)[-1])

    def action_collapse(self) -> None:
        """Close everything below the first level."""
        for node, row in self._row_of.items():
            if node:
                row.collapse()

    def action_source(self) -> None:
        """Show or hide the source pane."""
        self.toggle_class("with-source")
        if self.has_class("with-source"):
            self._show_source(self.chosen)

    def action_search(self) -> None:
        """Ask what to search."""
        self.add_class("searching")
        self.query_one("#query", Input).focus()

    def action_leave_search(self) -> None:
        """Back to the tree."""
        self.remove_class("searching")
        self._tree.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the first match."""
        self.action_leave_search()
        try:
            self._found = self._rows.matches(event.value) if event.value else []
        except ValueError as error:
            self._found = []
            self._say(str(error))
            return
        self._at = -1
        self.action_step(1)

    def action_step(self, step: int) -> None:
        """Go to the next match, or the one before."""
        if not self._found:
            self._say("no match")
            return
        self._at = (self._at + step) % len(self._found)
        self._say(f"match {self._at + 1} of {len(self._found)}")
        self._reveal(self._found[self._at])
