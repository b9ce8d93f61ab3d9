"""`bragg ranks`: which rank of a job the others wait for, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.progress import working
from bragg.errors import UsageError

_EPILOG = """\b
Examples:
  bragg run --data trace -- torchrun --nproc-per-node 8 train.py
  bragg ranks train.job
  bragg ranks s3://bucket/train.job
  bragg ranks train.job --executor dask:tcp://node1:8786
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, metavar="JOB | FILE...")
@click.option("--executor", metavar="dask:ADDRESS", help="Read the ranks on the workers of this scheduler of dask.")
@click.option(
    "--columns",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write ranks, collectives and call paths as Parquet files too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all ranks, steps and findings.")
def ranks(files: tuple[str, ...], executor: str | None, columns: Path | None, as_json: bool) -> None:
    """Say which rank of a job the others wait for, since when, what it costs, and why.

    JOB is the directory that bragg run wrote; FILEs are profiles of its ranks. Both may be addresses that fsspec knows.
    All ranks leave a collective together, so the one that came last has the shortest: no clock is compared. With bragg
    run --data trace each collective of each step is known; otherwise their sums are compared.
    """
    from bragg.cli.jobs.remote import local_files

    with local_files(files) as paths:
        _compare(_named(paths), executor, columns, as_json=as_json)


def _compare(files: Sequence[Path], executor: str | None, columns: Path | None, *, as_json: bool) -> None:
    from bragg.analyze.ranks.answer import compare_ranks
    from bragg.cli.rank_files import executor_named, read_ranks
    from bragg.formats.job.columns import write_columns
    from bragg.views.text.ranks_text import ranks_json, ranks_lines
    from bragg.views.text.units import bytes_text

    with executor_named(executor) as pool, working("Reading ranks"):
        read = read_ranks(files, pool)
    if len(read.summaries) < 2:
        raise UsageError(
            f"comparing ranks needs two of them, and there {'is one' if read.summaries else 'is none'}",
            hint=read.problems[0] if read.problems else "Give the directory of a job, or the profiles of its ranks",
        )
    if columns is not None:
        with working(f"Writing {columns}"):
            size_bytes = write_columns(read.summaries, columns)
        say([f"Wrote {columns}/ ({bytes_text(size_bytes)} of Parquet)"])
    with working("Comparing"):
        answer = compare_ranks(read.summaries, read.problems, read.sums)
    if as_json:
        write_json("ranks", ranks_json(answer))
    else:
        write_lines(ranks_lines(answer, stream_style(sys.stdout)))


def _named(files: Sequence[Path]) -> Sequence[Path]:
    if files:
        return files
    from bragg.formats.job.directory import is_recorded_job

    found = [path for path in sorted(Path().iterdir()) if is_recorded_job(path)]
    if is_recorded_job(Path()):
        return [Path()]
    if not found:
        raise UsageError("there is no job here", hint="Record one with: bragg run --data trace -- torchrun train.py")
    return [max(found, key=lambda path: path.stat().st_mtime_ns)]
