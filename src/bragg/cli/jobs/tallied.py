"""The tally of a file, of a job, and of a run that has just ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bragg.analyze.tally import Tally, tally_of
from bragg.cli.console import TALLY_ROWS
from bragg.cli.jobs.opened import open_job, say_problems
from bragg.cli.profile_file import loaded
from bragg.errors import UsageError
from bragg.views.job.tally_text import tally_json, tally_lines

if TYPE_CHECKING:
    from bragg.cli.run_report import RunReport
    from bragg.views.text.style import Style


# What a tally counts; Python call paths, samples and code of kernels are not in it.
_COUNTED = {"context": "shadow", "data": "tree", "gpu_api": "all", "sample_interval_us": 0, "kernel_code": False}
_MORE_THAN_SUMS = {
    "counters": "--counters",
    "counters_exact": "--counters-exact",
    "sampling": "--sample",
    "instrument": "--instrument",
    "rotate_s": "--rotate",
    "repeat": "--repeat",
}


def tally_options(given: dict[str, Any]) -> dict[str, Any]:
    """Options of a recording that keeps what a tally counts, and no more; those that the user gave win.

    Args:
        given: By name; None: not given.

    Raises:
        UsageError: One of them asks for more than sums.
    """
    refused = [flag for name, flag in _MORE_THAN_SUMS.items() if given.get(name) is not None]
    if given.get("data") == "trace":
        refused.append("--data trace")
    if refused:
        raise UsageError(
            f"--tally keeps sums alone, and {refused[0]} asks for more",
            hint="Leave --tally out, then: bragg tally FILE",
        )
    return {**given, **{name: value for name, value in _COUNTED.items() if given.get(name) is None}}


def tally_of_path(path: Path) -> Tally:
    """The tally of a profile, or of the directory of a job; what is wrong with a job goes to stderr.

    Raises:
        BadFile: It cannot be read.
    """
    if not path.is_dir():
        return tally_of([loaded(path, trace=False)])
    opened = open_job(path)
    say_problems(opened.job)
    return tally_of(opened.profiles, [rank.rank for rank in opened.job.ranks])


class RunTally:
    """How `bragg run --tally` ends.

    Args:
        report: Of the run.
    """

    def __init__(self, report: RunReport) -> None:
        self._report = replace(report, next_verb="tally")
        profiles = [profile for _, profile in report.profiles]
        self._tally = tally_of(profiles) if report.job is None else tally_of_path(report.job)

    def lines(self, style: Style, *, summary: bool, every_process: bool) -> list[str]:
        """The tables, if a summary is wanted, then what was not recorded and what was written."""
        told = self._report.lines(style, summary=False, every_process=every_process)
        if not summary:
            return told
        tables = tally_lines(self._tally, style, TALLY_ROWS) if self._tally.sections else []
        return [*(tables or ["nothing to count: no scope, operator, GPU work or call of the GPU's API"]), "", *told]

    def to_json(self) -> dict[str, Any]:
        """What is said of every run, and all rows of the tally."""
        return {**self._report.to_json(), "tally": tally_json(self._tally)}
