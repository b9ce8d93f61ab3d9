"""What `bragg run` says at the end of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from bragg.analyze.engine import findings
from bragg.analyze.report import answered
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.steady import steady_part
from bragg.cli.jobs.recorded import as_job, job_line
from bragg.cli.progress import working
from bragg.cli.worker_profiles import with_folded_workers
from bragg.errors import BackendUnavailable, NothingRecorded
from bragg.formats import finish, load
from bragg.model import Profile
from bragg.views.terminal.flat_view import flat_view
from bragg.views.terminal.summary import N_CAUSES, summary_lines, warning_lines
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.analysis_text import best_findings
from bragg.views.text.clock_facts import clock_lines
from bragg.views.text.memory_facts import memory_lines
from bragg.views.text.nccl_facts import nccl_lines, nccl_notes
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.sampling_facts import sampling_line
from bragg.views.text.style import Style
from bragg.views.text.telemetry_facts import telemetry_lines
from bragg.views.text.units import bytes_text, count_text, signal_name, time_text
from bragg.views.text.wall_line import wall_json

if TYPE_CHECKING:
    from bragg.record import RunResult


_N_HOT_ROWS = 5
_N_NOTES = 1
_N_NAMED = 3
_N_INSIDE = 1
# Four million slices, which take 0.15 GB and about a second; of longer timelines the sums are shown.
_MAX_READ_BYTES = 16_000_000


@dataclass(frozen=True, eq=False)
class RunReport:
    """The profiles of a run, and what is worth saying of them.

    Attributes:
        exit_code: Of the target; negative: the signal that ended it.
        duration_s: Wall time of the target.
        profiles: Path and content of each, at least one.
        n_empty: Processes that recorded nothing.
        notes: What could not be recorded.
        n_earlier: Files of phases before those of `profiles`.
        job: The directory of the profiles, if they are of ranks.
        next_verb: The command to look at them with.
    """

    exit_code: int
    duration_s: float
    profiles: list[tuple[Path, Profile]]
    n_empty: int
    notes: list[str]
    n_earlier: int = 0
    job: Path | None = None
    next_verb: str = "view"

    @classmethod
    def of(cls, result: RunResult, *, ranks_are_job: bool = True) -> RunReport:
        """Write the profiles of a run.

        Args:
            result: The run.
            ranks_are_job: Put the profiles of ranks into a directory.

        Raises:
            NothingRecorded: There is nothing to write.
            RecordingFailed: Something could not be written.
        """
        with working("Writing the profile"):
            finished = result.finish(finish)
        if not finished.profiles:
            raise NothingRecorded(_why_empty(result.exit_code, finished.empty), hint=_hint_for_empty(result))
        n_earlier = len(finished.earlier)
        profiles = finished.profiles if n_earlier else with_folded_workers(finished.profiles, result.config.output)
        notes = [*result.notes, *nccl_notes([profile.meta for _, profile in profiles])]
        report = cls(result.exit_code, result.duration_s, profiles, finished.empty, notes, n_earlier)
        job = as_job(profiles, result.config, result.stem) if ranks_are_job else None
        if job is None:
            return report
        return replace(report, profiles=job.profiles, notes=[*job.notes, *report.notes], job=job.directory)

    def check_backend(self, requested: str) -> None:
        """Check that the backend that was asked for did measure.

        Raises:
            BackendUnavailable: It failed in every process; the profiles hold the host's side.
        """
        failed = [facts.gpu_failure for facts in (RunFacts(profile.meta) for _, profile in self.profiles)]
        if requested == "cuda" and all(failed):
            raise BackendUnavailable(f"GPU work was not recorded: {failed[0]}", hint="Run: bragg doctor")

    @property
    def main(self) -> tuple[Path, Profile]:
        """The profile that says most about the time: launchers and helpers record little, or wait for ranks."""
        return max(self.profiles, key=lambda item: _weight(item[1]))

    @cached_property
    def shown(self) -> Profile:
        """The main profile, with its timeline if it has one: what is said at the end is what `bragg view` says."""
        path, profile = self.main
        is_read = profile.run.is_trace and not len(profile.slices) and path.stat().st_size <= _MAX_READ_BYTES
        return load(path) if is_read else profile

    def lines(self, style: Style, *, summary: bool, every_process: bool) -> list[str]:
        """At most 15 lines, but one more for each process if every process is asked for."""
        with working("Analyzing the profile"):
            profile = self.shown
            lines = self._summary_lines(style) if summary else warning_lines(profile, style)
        notes = self.notes if every_process else self.notes[:_N_NOTES]
        lines += map(style.warning, style.paragraphs(f"note: {note}" for note in notes))
        meta = profile.meta
        facts = [*filter(None, [sampling_line(meta)]), *telemetry_lines(meta), *memory_lines(meta), *nccl_lines(meta)]
        facts += clock_lines(meta, _N_INSIDE)
        if every_process:
            facts += [self._process_line(path, profile) for path, profile in self.profiles]
            facts += [f"processes that recorded nothing: {self.n_empty}"]
        wrote = self._wrote_line()
        what, next_, command = wrote.partition(". Next: ")
        last = [wrote] if style.fits(wrote) or not next_ else [*style.paragraphs([f"{what}."]), f"Next: {command}"]
        return [*lines, *style.paragraphs([*facts, *self._error_lines()]), *last]

    def _error_lines(self) -> list[str]:
        """What ended a kernel in a process whose warnings are not shown."""
        main = self.main[1]
        failed = (RunFacts(profile.meta).kernel_failure for _, profile in self.profiles if profile is not main)
        return list(filter(None, failed))[:_N_NOTES]

    def _summary_lines(self, style: Style) -> list[str]:
        profile = self.shown
        answer = answered(profile)
        lines = summary_lines(profile, style, answer)
        if profile.run.phase:
            lines[0] = style.bold(style.cut(self._of_last_phase(), style.width))
        said = {finding.message for finding in best_findings(answer, N_CAUSES)}
        hints = [hint for hint in findings(answer.evidence) if hint.message not in said]
        return [*lines, *map(style.dim, style.paragraphs(hint.text for hint in hints))]

    def _of_last_phase(self) -> str:
        """How long the program ran, and which part of that the summary is of."""
        facts = RunFacts(self.shown.meta)
        ran = f"{facts.command or 'the program'} ran {time_text(self.duration_s * 1e9)}"
        return f"{ran}; the last {facts.duration_text()}, which {self.main[0].name} has:"

    def to_json(self) -> dict[str, Any]:
        """JSON values; the hottest kernels or functions are those of the profile that says most."""
        path, profile = self.main[0], self.shown
        hottest = flat_view(steady_part(profile), ViewOptions(max_lines=_N_HOT_ROWS))
        return {
            "exit_code": self.exit_code,
            "duration_s": round(self.duration_s, 6),
            **({"job": str(self.job)} if self.job else {}),
            "profiles": [_profile_json(path, profile) for path, profile in self.profiles],
            "empty_processes": self.n_empty,
            "notes": self.notes,
            "wall": wall_json(wall_parts(profile)),
            "hottest": {"file": str(path), **hottest.to_json()},
        }

    def _wrote_line(self) -> str:
        path, profile = self.main
        if self.job is not None:
            shown = profile if self.next_verb == "view" else None
            return job_line(self.job, [path for path, _ in self.profiles], shown, verb=self.next_verb)
        n_others = len(self.profiles) - 1 + self.n_earlier
        others = f" and {count_text(n_others, 'more profile')}" if n_others else ""
        if names := [str(other) for other, _ in self.profiles if other != path]:
            others += f": {', '.join([*names[:_N_NAMED], *['…'] * (len(names) > _N_NAMED)])}"
        what = _size_and_cost(path, RunFacts(profile.meta))
        verb = "source" if self.next_verb == "view" and profile.run.compiled_for_target else self.next_verb
        return f"Wrote {path} ({what}){others}. Next: bragg {verb} {quote(str(path))}"

    @staticmethod
    def _process_line(path: Path, profile: Profile) -> str:
        facts = RunFacts(profile.meta)
        what = f"{_size_and_cost(path, facts)}, backend {facts.backend}"
        return f"process {profile.run.pid}: {path} ({what}): {facts.command}"


def _size_and_cost(path: Path, facts: RunFacts) -> str:
    return ", ".join(filter(None, [bytes_text(path.stat().st_size), facts.cost]))


def _why_empty(exit_code: int, n_processes: int) -> str:
    if exit_code < 0:
        return f"nothing was recorded: {signal_name(-exit_code)} ended the program before anything was written"
    if n_processes:
        ended = f"failed with exit code {exit_code}" if exit_code else "ended"
        return f"nothing was recorded: the program {ended} before it launched a kernel, entered a scope or was sampled"
    return (
        "nothing was recorded: no process of the program used a GPU, and none was Python, other than with -I, -E or -S"
    )


def _hint_for_empty(result: RunResult) -> str:
    if result.exit_code < 0:
        return "A killed program loses what came after the last flush: try --flush-interval 100"
    return "; ".join(result.notes)


def _weight(profile: Profile) -> tuple[float, bool, float]:
    return _total(profile, "gpu_time"), profile.run.rank is not None, _total(profile, "host_time")


def _total(profile: Profile, metric: str) -> float:
    return profile.total(metric) if metric in profile.metrics else 0.0


def _profile_json(path: Path, profile: Profile) -> dict[str, Any]:
    facts = RunFacts(profile.meta)
    return {
        "file": str(path),
        "size_bytes": path.stat().st_size,
        "pid": profile.run.pid,
        "backend": facts.backend,
        "completeness": facts.completeness.word,
        "overhead": facts.overhead.to_json() if facts.overhead else None,
        "warnings": list(facts.warnings()),
    }
