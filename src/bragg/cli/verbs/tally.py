"""`bragg tally`: how often each thing ran and how long it took."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bragg.cli.console import TALLY_ROWS, stream_style, write_json, write_lines
from bragg.cli.profile_file import newest_profile_or_job, readable_argument
from bragg.errors import NothingRecorded

_EPILOG = """\b
Examples:
  bragg tally train.bragg
  bragg tally train.job --lines 5
  bragg run --tally train.py
"""


@click.command(epilog=_EPILOG)
@readable_argument
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=TALLY_ROWS,
    metavar="N",
    help=f"Show N rows of each table; 0: all.  [{TALLY_ROWS}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows.")
def tally(file: Path | None, lines: int, as_json: bool) -> None:
    """Count what FILE, a profile or the directory of a job, ran: a table for each kind.

    Calls of the GPU's API, operators, scopes, work of the GPU, and bytes that were copied: total, share, calls,
    average, shortest and longest, percentiles; of a job the imbalance between ranks, and the rank with the largest
    total.
    """
    from bragg.cli.jobs.tallied import tally_of_path
    from bragg.views.job.tally_text import tally_json, tally_lines

    path = newest_profile_or_job(file)
    counted = tally_of_path(path)
    if not counted.sections:
        raise NothingRecorded(f"{path} has nothing to count", hint="Where its time went: bragg view")
    if as_json:
        write_json("tally", {"file": str(path), **tally_json(counted)})
    else:
        write_lines([str(path), *tally_lines(counted, stream_style(sys.stdout), lines or None)])
