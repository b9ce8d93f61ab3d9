"""`bragg run --repeat`: one program recorded several times, as a set that `bragg diff` compares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bragg.analyze.comparing.disturbance import taken_from
from bragg.analyze.comparing.repeats import noise_of, spread_of
from bragg.analyze.imports import imports_apart
from bragg.cli.console import error_lines, say, stream_style, write_json
from bragg.cli.run_report import RunReport
from bragg.errors import UsageError
from bragg.formats import finish
from bragg.record import RecordConfig, run_target
from bragg.record.launcher.target import find_target
from bragg.record.output import Producer, expand
from bragg.views.text.units import share_text, time_text, value_text


def run_repeatedly(config: RecordConfig, target: Sequence[str], count: int, *, as_json: bool) -> int:
    """Record a program so many times, one run after the other, and say how they differ.

    Args:
        config: How to record; the profiles are numbered: `train-1.bragg`.
        target: The program.
        count: How often.
        as_json: Print one object for all runs instead of lines.

    Returns:
        The exit code of the program: of the first run that fails, after which no other is started.

    Raises:
        UsageError: A profile of such a name exists, or there is no such program.
        NothingRecorded: A run recorded nothing.
        BackendUnavailable: The backend was asked for and failed.
    """
    configs = [replace(config, output=_numbered(config.output, number)) for number in range(1, count + 1)]
    if not config.force:
        _refuse_existing([each.output for each in configs], find_target(target).stem)
    reports: list[RunReport] = []
    for number, each in enumerate(configs, 1):
        report = RunReport.of(run_target(each, target, finish), ranks_are_job=False)
        reports.append(report)
        report.check_backend(config.backend)
        say([_run_line(report, number, count)])
        if report.exit_code:
            say(error_lines(f"run {number} of {count} ended with exit code {report.exit_code}", ""))
            break
    if as_json:
        write_json("runs", {"runs": [report.to_json() for report in reports]})
    elif len(reports) == count:
        say([*_warnings(reports), *_set_lines(reports)])
    return reports[-1].exit_code


def _numbered(pattern: str, number: int) -> str:
    if pattern.endswith("/") or Path(pattern).is_dir():
        pattern = str(Path(pattern) / "%s")
    return f"{pattern.removesuffix('.bragg')}-{number}.bragg"


def _refuse_existing(patterns: Sequence[str], stem: str) -> None:
    """A set has names of its own: runs of two programs under one name would be compared as one.

    Names with a process id or a host cannot be known before the run.
    """
    for pattern in patterns:
        name = expand(pattern, Producer(stem, 0, None, ""))
        if name.exists():
            raise UsageError(f"{name} exists", hint="Name this set of runs, -o after, or overwrite it with --force")


def _run_line(report: RunReport, number: int, count: int) -> str:
    path, profile = report.main
    metric = profile.metric(profile.main_metric)
    value = value_text(profile.total(metric.name), metric.unit)
    return f"run {number} of {count}: {time_text(report.duration_s * 1e9)}, {metric.name} {value}: {path}"


def _warnings(reports: Sequence[RunReport]) -> list[str]:
    """What could not be recorded, once for all runs."""
    style = stream_style(sys.stderr)
    return [style.warning(f"note: {note}") for note in dict.fromkeys(note for each in reports for note in each.notes)]


def _set_lines(reports: Sequence[RunReport]) -> list[str]:
    paths = [report.main[0] for report in reports]
    profiles = [report.main[1] for report in reports]
    name = profiles[-1].main_metric
    # As `bragg diff` compares them: without imports.
    values = np.array([imports_apart(run)[0].total(name) if name in run.metrics else 0.0 for run in profiles])
    taken = taken_from(profiles, values, name)
    left = (values if taken is None else values - taken)[:, np.newaxis]
    noise = noise_of(name, profiles[-1].metric(name).unit, is_undisturbed=taken is not None)
    spread = spread_of(left, left, noise, paired=False)
    value = value_text(float(spread.before[0]), profiles[-1].metric(name).unit)
    least = share_text(float(spread.margin()[0] / spread.before[0])) if spread.before[0] else ""
    others = "" if taken is None else f", without {time_text(float(taken.mean()))} in which other programs had the core"
    told = f"{others}; a change of more than {least} will stand out from noise" if least else others
    pattern = paths[0].name.replace("-1.", "-*.")
    return [
        f"{len(reports)} runs: {name} {value}{told}",
        f"Wrote {paths[0]} to {paths[-1].name}. Next: record another set, -o after, then: "
        f"bragg diff {paths[0].with_name(pattern)} after-*.bragg",
    ]
