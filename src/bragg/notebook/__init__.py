"""Profiles in notebooks: how they show themselves, `%%bragg`, and a widget that answers.

Importing this imports neither IPython nor anywidget.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.notebook.widget import ReportWidget

__all__ = ["ReportWidget"]


def __getattr__(name: str) -> object:
    """The widget, whose package is an extra."""
    if name == "ReportWidget":
        from bragg.notebook.widget import ReportWidget

        return ReportWidget
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
