"""A profile as a widget: what is chosen in it comes back to Python, and Python chooses in it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlencode

from bragg.errors import UsageError
from bragg.model import Profile
from bragg.model.ids import NodeId
from bragg.notebook.frame import page_of

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise UsageError(
        f"the widget needs {error.name}",
        hint="Install it: pip install 'bragg[notebook]'; profiles show themselves without",
    ) from error

__all__ = ["ReportWidget"]


class ReportWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """The page of a profile in a notebook.

    Attributes:
        place: What the page shows, as its address says it behind `#`; may be set.

    Args:
        profile: What to show.
    """

    _esm = Path(__file__).with_name("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    place = traitlets.Unicode("").tag(sync=True)

    def __init__(self, profile: Profile) -> None:
        super().__init__(page=page_of(profile))
        self._profile = profile

    @property
    def view(self) -> str:
        """Which view is shown: `summary`, `flame`, `kernels` and so on; empty before the first choice."""
        return self._field("view")

    @property
    def node(self) -> NodeId | None:
        """The node that is chosen; None: none is."""
        node = self._field("node")
        return NodeId(int(node)) if node.isdecimal() and int(node) < len(self._profile.tree) else None

    @property
    def call_path(self) -> list[str]:
        """Labels of the chosen node and what is above it, the outermost first; empty: none is chosen."""
        tree, node = self._profile.tree, self.node
        return [] if node is None else [tree.label(above) for above in tree.path(node)[1:]]

    def show(self, view: str, **state: str | int) -> None:
        """Open a view.

        Args:
            view: Its name in the address.
            state: What it shows, as its address says it: `node=12`, `q="matmul"`.
        """
        self.place = urlencode({"view": view, **state})

    def _field(self, name: str) -> str:
        place: str = self.place
        return parse_qs(place).get(name, [""])[0]
