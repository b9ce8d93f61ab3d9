"""`bragg view`: where the time went."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.console import stream_style, write_json, write_lines
from bragg.cli.profile_file import file_argument, newest_profile

if TYPE_CHECKING:
    from bragg.model import Profile
    from bragg.views.terminal.style import Style
    from bragg.views.terminal.view_options import ViewOptions

__all__ = ["view"]

_DEFAULT_LINES = 60
_EPILOG = """\b
Examples:
  bragg view train.bragg --include forward
  bragg view train.bragg --flat --metric gpu_time,gpu_count,avg
"""


@click.command(epilog=_EPILOG)
@file_argument
@click.option("--flat", is_flag=True, help="A table by kernel or function instead of a tree.")
@click.option("-m", "--metric", default="", metavar="NAME[,NAME]", help="What to show; the first decides what is hot.")
@click.option("-i", "--include", metavar="REGEX", help="Only call paths through names that match.")
@click.option(
    "-e", "--exclude", metavar="REGEX", help="No call paths through names that match; totals shrink with them."
)
@click.option("-t", "--threshold", default=0.0, metavar="PERCENT", help="No rows below this share of the total.")
@click.option("-d", "--depth", type=click.IntRange(min=0), metavar="N", help="Levels of the tree below the first row.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), metavar="N", help=f"The N hottest rows; 0: all.  [{_DEFAULT_LINES}]"
)
@click.option("-s", "--sort", metavar="NAME", help="What decides instead of the first metric; or `name`.")
@click.option("--full-names", is_flag=True, help="Whole kernel names and paths.")
@click.option("--no-fold", is_flag=True, help="Every library frame and every caller on a line of its own.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, all rows unless --lines is given.")
def view(file: Path | None, flat: bool, as_json: bool, **choices: Any) -> None:
    """Show where the time of FILE went, hottest first.

    FILE is a profile (.bragg) or the capture of a run (.part); without it, the newest profile here.
    """
    from bragg import formats

    path = newest_profile(file)
    profile = formats.load(path, trace=False)
    options = _view_options(choices, default_lines=0 if as_json else _DEFAULT_LINES)
    if as_json:
        _write_json(profile, path, options, flat)
    else:
        style = stream_style(sys.stdout)
        write_lines(profile_lines(profile, str(path), options, style, flat=flat))


def profile_lines(
    profile: Profile, source: str, options: ViewOptions, style: Style, *, flat: bool = False
) -> list[str]:
    """Header, tree or table, and notes of a profile."""
    from bragg.views.terminal.flat_view import flat_lines, flat_view
    from bragg.views.terminal.header import header_lines
    from bragg.views.terminal.tree_text import tree_lines
    from bragg.views.terminal.tree_view import tree_view

    body = flat_lines(flat_view(profile, options), style) if flat else tree_lines(tree_view(profile, options), style)
    return [*header_lines(profile.meta, source, style), "", *body]


def _write_json(profile: Profile, path: Path, options: ViewOptions, flat: bool) -> None:
    from bragg.views.terminal.flat_view import flat_view
    from bragg.views.terminal.tree_view import tree_view

    shown = flat_view(profile, options) if flat else tree_view(profile, options)
    write_json("flat" if flat else "tree", {"file": str(path), "meta": profile.meta, **shown.to_json()})


def _view_options(choices: Mapping[str, Any], default_lines: int) -> ViewOptions:
    from bragg.views.terminal.view_options import ViewOptions

    lines = default_lines if choices["lines"] is None else choices["lines"]
    return ViewOptions(
        metrics=tuple(name.strip() for name in choices["metric"].split(",") if name.strip()),
        sort=choices["sort"],
        include=choices["include"],
        exclude=choices["exclude"],
        threshold=choices["threshold"] / 100,
        max_depth=choices["depth"],
        max_lines=lines or None,
        full_names=choices["full_names"],
        fold=not choices["no_fold"],
    )
