"""`bragg report`: a profile as one page that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from bragg.cli.console import say, write_json
from bragg.cli.output_file import refuse_existing, write_text
from bragg.cli.profile_file import as_named, beside, loaded, newest_profile_or_job, readable_argument
from bragg.cli.progress import working

_EPILOG = """\b
Examples:
  bragg report train.bragg
  bragg report train.bragg -o train.html --force
  bragg report train.job
"""


@click.command(epilog=_EPILOG)
@readable_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="HTML", help="Name the page.")
@click.option("--title", metavar="TEXT", help="Set the title of the page.  [name of FILE]")
@click.option("--force", is_flag=True, help="Overwrite HTML.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON object.")
def report(file: Path | None, output: Path | None, title: str | None, force: bool, as_json: bool) -> None:
    """Write FILE as one HTML page: summary, findings, flame graph, kernels, timeline, source, roofline.

    Of the directory of a job, the page has its ranks compared, and everything of the one that the others wait for; if
    there is none, of the one with most time.

    The page needs no network: open it from disk, mail it, attach it to a job. It is named after FILE.

    Whoever gets the page sees the call paths, names, source files and command line of the run.
    """
    from bragg.cli.jobs.opened import one_rank
    from bragg.cli.rank_files import compared_ranks, late_rank
    from bragg.views.text.units import bytes_text
    from bragg.views.web.page import page
    from bragg.views.web.report_payload import report_payload

    found = newest_profile_or_job(file)
    ranks = compared_ranks(found)
    path = one_rank(found, late_rank(ranks)) if found.is_dir() else found
    target = output or beside(found, ".html")
    refuse_existing(target, force)
    name = title or (f"{found.resolve().name}, {path.name}" if found.is_dir() else path.name)
    profile = loaded(path)
    with working(f"Making {target}"):
        write_text(target, page([report_payload(profile, name, ranks=ranks)], name))
    size_bytes = target.stat().st_size
    if as_json:
        write_json("report", {"file": as_named(path), "page": str(target), "size_bytes": size_bytes})
    else:
        view = f"bragg view {quote(as_named(found))}"
        say([f"Wrote {target} ({bytes_text(size_bytes)}). Next: open it in any browser, or: {view}"])
