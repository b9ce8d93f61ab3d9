"""`bragg plot`: a picture of a profile."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.output_file import refuse_existing, write_text
from bragg.cli.profile_file import loaded, newest_profile
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.analyze.roofline import Roofline


_KIND = "roofline"
_EPILOG = """\b
Examples:
  bragg plot train.bragg
  bragg plot roofline train.bragg -o roofline.svg --include forward
"""


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, metavar="[roofline] [FILE]")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="SVG", help="Name the picture.")
@click.option("-i", "--include", metavar="REGEX", help="Show only call paths through names that match.")
@click.option("-e", "--exclude", metavar="REGEX", help="Leave out call paths through names that match.")
@click.option("--force", is_flag=True, help="Overwrite SVG.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def plot(
    words: tuple[str, ...],
    output: Path | None,
    include: str | None,
    exclude: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw how near the kernels of FILE come to the peak of their GPU.

    Kernels need flops and bytes: give them by launch_metadata of triton.jit, or by bragg.scope. The picture is an SVG
    named after FILE; its numbers are printed as a table.
    """
    from bragg.analyze.roofline import roofline
    from bragg.views.roofline_svg import roofline_svg
    from bragg.views.terminal.filters import filter_paths
    from bragg.views.text.roofline_text import roofline_lines

    path = newest_profile(_file_of(words))
    target = output or path.with_suffix(f".{_KIND}.svg")
    refuse_existing(target, force)
    chart = roofline(filter_paths(loaded(path, trace=False), include, exclude).profile)
    write_text(target, roofline_svg(chart, f"Roofline of {path.name}"))
    if as_json:
        write_json(_KIND, {"file": str(path), "picture": str(target), **_json(chart)})
    else:
        write_lines(roofline_lines(chart, stream_style(sys.stdout)))
    say([f"Wrote {target}. Next: open it in any browser"])


def _file_of(words: tuple[str, ...]) -> Path | None:
    """The file among the words of a command line, which may name the kind of picture before it: there is one kind.

    Raises:
        UsageError: There are more files than one.
    """
    files = words[1:] if words and words[0] == _KIND else words
    if len(files) > 1:
        raise UsageError(f"bragg plot draws one file, and {files[1]!r} is one more")
    return Path(files[0]) if files else None


def _json(chart: Roofline) -> dict[str, Any]:
    return {
        "roofs": [dataclasses.asdict(roof) for roof in chart.roofs],
        "points": [point.to_json() for point in chart.points],
        "time_ns": chart.time_ns,
    }
