"""`bragg view --tui`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.views.terminal.view_options import ViewOptions


# Generated files can be endless, and nobody reads them.
_MAX_SOURCE_BYTES = 4 << 20


def run_tui(profile: Profile, title: str, options: ViewOptions) -> None:
    """Show a profile until the user leaves.

    Raises:
        UsageError: textual is not installed, or this is not a terminal.
        NothingRecorded: There is nothing to show.
    """
    try:
        from bragg.views.tui.app import ProfileApp
    except ImportError as error:
        raise UsageError("--tui needs the package textual", hint="Install it: pip install 'bragg[tui]'") from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--tui needs a terminal", hint="Leave it out to write the tree as text")
    from bragg.views.terminal.tree_view import tree_view
    from bragg.views.tui.rows import TreeRows

    ProfileApp(TreeRows(tree_view(profile, options)), title, source_reader(profile)).run()


def source_reader(profile: Profile) -> Callable[[str], str | None]:
    """Finds the text of a source file: in the profile, else on this machine."""

    @cache
    def read(file: str) -> str | None:
        if file in profile.sources:
            return profile.sources[file]
        path = Path(file)
        try:
            return path.read_text(encoding="utf-8") if path.stat().st_size <= _MAX_SOURCE_BYTES else None
        except (OSError, ValueError):  # not here, a name that can be none, or no text
            return None

    return read
