"""`bragg diff`: what changed between two recordings, or two sets of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bragg.cli.completion import gates as completed_gates
from bragg.cli.completion import metrics
from bragg.cli.console import say, stream_style, write_json, write_lines
from bragg.cli.output_file import refuse_existing, write_text
from bragg.cli.profile_file import READABLE, as_named, loaded
from bragg.cli.progress import working
from bragg.cli.run_sets import set_name, short_names, two_sets
from bragg.errors import UsageError

if TYPE_CHECKING:
    from bragg.analyze.comparing.comparison import Comparison
    from bragg.analyze.comparing.compiled_changes import CompiledChange
    from bragg.analyze.comparing.diff import By
    from bragg.analyze.comparing.gates import Verdict
    from bragg.analyze.comparing.per_turn import Loop
    from bragg.analyze.comparing.program_time import ProgramTime
    from bragg.model import Profile
    from bragg.views.text.analysis_text import ChangedFinding
    from bragg.views.text.style import Style


_DEFAULT_ROWS = 30
_PATH = "path"
_SMALL_BYTES = 8_000_000  # a timeline of 2 million slices: 0.5 s
_EPILOG = """\b
Examples:
  bragg diff before.bragg after.bragg
  bragg diff main-*.bragg branch-*.bragg --gate total --gate kernel:matmul
  bragg diff main/ branch/ --gate step --fail-over 2%

\b
--gate judges, and may be repeated:
  total         the metric of the whole program
  wall          the wall time of the run
  step          the time of a step, such as a turn of the loop that serves
  region:NAME   a region of a step: data, forward, backward, optimizer
  path:NAME     all that runs in and below a function, scope or operator
  kernel:NAME   all launches of a kernel
  rows          every row of the table
All but rows take what it may be at most, however it was before: step=30ms.
Where each does, one file or set is enough.
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="BEFORE... AFTER...", type=READABLE)
@click.option(
    "--by",
    type=click.Choice(["path", "kernel", "specialization"]),
    help="Compare call paths, kernels or specializations.  [path; of programs without common paths kernel]",
)
@click.option(
    "-m",
    "--metric",
    metavar="NAME",
    shell_complete=metrics,
    help="Compare this metric.  [gpu_time, without a GPU host_time]",
)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N largest changes; 0: all.  [{_DEFAULT_ROWS}]",
)
@click.option("--no-fold", is_flag=True, help="Show every frame of libraries.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="WHAT",
    shell_complete=completed_gates,
    help="Exit with code 5 if WHAT became slower, beyond noise: see below.  [total, with --fail-over]",
)
@click.option("--fail-over", metavar="PERCENT", help="Let what --gate judges grow by this share.  [0%]")
@click.option(
    "--floor",
    metavar="TIME",
    help="Let it grow up to this: 20us, or a number in the metric's unit.  [0, for rows 1% of the whole]",
)
@click.option(
    "--fail-undecided",
    is_flag=True,
    help="Exit with code 5 too if WHAT grew by more than --fail-over, but that may be noise.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="HTML", help="Also write a page with both flame graphs."
)
@click.option("--force", is_flag=True, help="Overwrite HTML.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all rows, or with --lines.")
def diff(
    files: tuple[Path, ...],
    by: str | None,
    metric: str | None,
    lines: int | None,
    no_fold: bool,
    gates: tuple[str, ...],
    fail_over: str | None,
    floor: str | None,
    fail_undecided: bool,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Show what became slower or faster from BEFORE to AFTER, the largest change first.

    Both are profiles (.bragg), captures (.part) or files of other profilers. For several runs of each, as bragg run
    --repeat 10 makes them, give two directories, or files that are numbered: main-1.bragg main-2.bragg branch-1.bragg
    branch-2.bragg. Then each change has an interval, and a gate knows what is noise.
    """
    from bragg.cli.gate import Gates

    judged = Gates.parse(gates, fail_over, floor, fails_undecided=fail_undecided)
    if html is not None:
        refuse_existing(html, force)
    is_alone = judged.need_no_baseline and len(files) == 1
    sides = two_sets((*files, *files) if is_alone else files)
    # Gates and programs that read the answer count on paths.
    finds_kernels = by is None and not gates and not as_json
    by_turn = not gates and not as_json
    found = _compared(sides, by or _PATH, metric, folds=not no_fold, finds_kernels=finds_kernels, by_turn=by_turn)
    if gates and metric is None:
        _refuse_other_devices(found)
    verdicts = judged.verdicts(found.comparison, found.before, found.after)
    if as_json:
        write_json("diff", found.to_json(lines) | judged.to_json(verdicts))
    elif not is_alone:
        style = stream_style(sys.stdout)
        write_lines(found.lines(style, _DEFAULT_ROWS if lines is None else lines or None))
    if html is not None:
        _write_page(html, found)
    if gates and (unrelated := found.unrelated_note()):
        say([f"note: {unrelated}: are these runs of one program?"])
    judged.judge(verdicts, found.comparison)


@dataclass(frozen=True, eq=False)
class _Difference:
    """What changed between two sets of runs.

    Attributes:
        names: Of both sides.
        before: Its runs; `after`: those of the other side.
        by: What was asked for: paths, kernels or specializations.
        paths: The comparison by path, as far as it was made.
        comparison: The one of whole runs that is shown, unless that of turns is.
        loop: The loop that the sides made more or fewer turns of; None: as many, or none is sure.
        turns: The comparison of one turn of it.
        unrelated: Why kernels are shown instead of paths; empty: they are not.
        step: The time of a step; None: not all runs have steps, or these differ.
        steps_differ: Whether all runs have steps, but not of the same thing.
        program: How long the programs took, where neither steps nor turns are compared; None: not known, or no GPU.
        total: The metric of whole programs without the time in which others had the core; None: they hardly had it.
        imports_ns: Host time of imports, which is not compared, as means of both sides.
        scripts: Those before and after, of which one is a copy of the other, compared as one; None: they are not.
        changed: Findings that have gone, are new, or save much more or less.
        compiled: What compilers did otherwise.
    """

    names: tuple[str, str]
    before: Sequence[Profile]
    after: Sequence[Profile]
    by: str
    paths: Comparison
    comparison: Comparison
    loop: Loop | None
    turns: Comparison | None
    unrelated: str
    step: Verdict | None
    steps_differ: bool
    program: ProgramTime | None
    total: Verdict | None
    imports_ns: tuple[float, float]
    scripts: tuple[str, str] | None
    changed: list[ChangedFinding]
    compiled: Sequence[CompiledChange]

    def lines(self, style: Style, max_rows: int | None) -> Iterator[str]:
        """The table, and what compilers and findings say of it."""
        from bragg.analyze.comparing.same_kernels import same_kernels
        from bragg.views.text.analysis_text import changed_lines
        from bragg.views.text.compiled_text import compiled_lines
        from bragg.views.text.diff_text import diff_lines, loop_text, program_lines, same_kernels_text, step_text
        from bragg.views.text.run_facts import RunFacts
        from bragg.views.text.units import value_text

        starved = max(RunFacts(run.meta).starved_share for run in (*self.before, *self.after))
        if self.step is not None:
            yield style.bold(f"a step: {step_text(self.step, starved)}")
        if self.program is not None:
            yield from map(style.bold, program_lines(self.program))
        if self.steps_differ:
            yield style.warning("warning: steps are of different kinds: neither they nor sums tell which run is faster")
        yield from changed_lines(self.changed, style)
        if any(self.imports_ns):
            before, after = (value_text(value, "ns") for value in self.imports_ns)
            yield style.dim(f"imports are left out: {before} before, {after} after")
        for name, runs in zip(self.names, (self.before, self.after), strict=True):
            for disturbance in islice(chain.from_iterable(RunFacts.of(run).disturbances() for run in runs), 1):
                yield style.warning(f"warning: {name}: {disturbance}")
        if same := same_kernels(self.before, self.after):
            yield style.warning(f"warning: {same_kernels_text(same)}")
        if self.loop and self.turns:
            yield style.dim(loop_text(self.loop))
        elif launches := self._unlike_launches():
            yield launches
        if self.scripts:
            before, after = (Path(script).name for script in self.scripts)
            yield style.dim(f"functions of {after} are compared with those of {before}")
        if self.unrelated:
            yield style.dim(f"{self.unrelated}, so this compares what ran; call paths: --by path")
        yield from diff_lines(self.turns or self.comparison, style, max_rows, starved, self.total)
        yield from compiled_lines(self.compiled, style)

    def _unlike_launches(self) -> str:
        """That one run launched its main kernel more often than the other; else empty: steps compare such runs."""
        from bragg.analyze.comparing.diff import By, compare_sets
        from bragg.analyze.comparing.launches import unlike_launches
        from bragg.views.text.diff_text import launches_text

        runs = (*self.before, *self.after)
        if (
            len(runs) > 2
            or self.step is not None
            or self.steps_differ
            or not all(run.measured("gpu_time") for run in runs)
        ):
            return ""
        kernels = compare_sets(self.before, self.after, By.KERNEL, "gpu_time")
        found = unlike_launches(kernels)
        return launches_text(found, kernels.tree.frames) if found else ""

    def unrelated_note(self) -> str:
        """That hardly a call path is in both, where call paths were compared; else empty."""
        from bragg.views.web.diff import unrelated_note

        return unrelated_note(self.paths) if self.by == _PATH else ""

    def to_json(self, max_rows: int | None) -> dict[str, Any]:
        """JSON values; without a number of rows all of them."""
        from bragg.analyze.comparing.same_kernels import same_kernels
        from bragg.analyze.report import finding_json
        from bragg.views.text.diff_text import diff_json, verdict_json

        gone = [finding_json(before) for before, _ in self.changed if before]
        new = [finding_json(after) for _, after in self.changed if after]
        return {
            "before": self.names[0],
            "after": self.names[1],
            **diff_json(self.comparison, max_rows or None),
            "step": self.step and verdict_json(self.step),
            "program": self.program and verdict_json(self.program.wall),
            "undisturbed": self.total and verdict_json(self.total),
            "imports_ns": list(self.imports_ns),
            "same_kernels": (same := same_kernels(self.before, self.after)) and asdict(same),
            "findings": {"gone": gone, "new": new},
            "compiled": [asdict(change) for change in self.compiled],
        }

    def packed(self, short_before: str, short_after: str) -> bytes:
        """The payload of a page, which has a flame graph of paths and a table of what ran."""
        from bragg.analyze.comparing.diff import By, compare_sets
        from bragg.views.web.diff import pack_difference

        metric, paths, flat = self.comparison.metric, self.paths, self.comparison
        if self.by != _PATH:
            before, after = _folded(self.before, self.after)
            paths = compare_sets(before, after, By.PATH, metric)
        elif not self.unrelated:
            flat = compare_sets(self.before, self.after, By.KERNEL, metric)
        return pack_difference(paths, flat, short_before, short_after)


def _compared(
    sides: tuple[Sequence[Path], Sequence[Path]],
    by: str,
    metric: str | None,
    *,
    folds: bool,
    finds_kernels: bool,
    by_turn: bool,
) -> _Difference:
    """Compare two sets of files.

    Args:
        sides: The files of both.
        by: What to compare: paths, kernels or specializations.
        metric: The one to compare; None: that which tells where the time went.
        folds: Put the frames of each library together.
        finds_kernels: Compare kernels where programs have hardly a path in common.
        by_turn: Compare turns of a loop, where the sides made more or fewer.
    """
    from bragg.analyze.comparing.compiled_changes import compiled_changes
    from bragg.analyze.comparing.diff import By, compare_sets
    from bragg.analyze.comparing.gates import step_verdict, total_verdict
    from bragg.analyze.comparing.per_turn import same_loop
    from bragg.analyze.comparing.program_time import program_time
    from bragg.analyze.comparing.renamed import script_of, with_script
    from bragg.analyze.comparing.step_units import differ
    from bragg.views.terminal.columns import choose_names
    from bragg.views.web.diff import unrelated_note

    first, second = (as_named(set_name(side)) for side in sides)
    # The timeline of a run tells its steps, where the recorder did not keep them.
    before, after = ([loaded(file, trace=_is_small(file)) for file in side] for side in sides)
    script = script_of(before[-1])
    matched = [with_script(run, script, before[-1]) for run in after]
    copy = script_of(after[-1]) if any(one is not other for one, other in zip(matched, after, strict=True)) else ""
    as_recorded, after = after, matched
    name = choose_names(after[-1], [metric], ())[0] if metric else None
    step, loop = step_verdict(before, as_recorded), same_loop(before, as_recorded) if by_turn else None
    are_small = all(_is_small(file) for side in sides for file in side)
    changed = _changed(before, as_recorded) if are_small else []
    (before, before_ns), (after, after_ns) = (_without_imports(runs, name) for runs in (before, after))
    with working("Comparing"):
        one, other = _folded(before, after) if by == _PATH and folds else (before, after)
        paths = compare_sets(one, other, By(by), name)
        unrelated = unrelated_note(paths) if finds_kernels else ""
        comparison = compare_sets(before, after, By.KERNEL, name) if unrelated else paths
        turns = _of_turns(before, after, loop, By.KERNEL if unrelated else By(by), name, folds) if loop else None
        total = None if turns else total_verdict(before, as_recorded, comparison.metric)
        compiled = compiled_changes(before[-1], after[-1])
        return _Difference(
            (first, second),
            before,
            after,
            by,
            paths,
            comparison,
            loop,
            turns,
            unrelated,
            step,
            step is None and differ((*before, *as_recorded)),
            program_time(before, as_recorded) if step is None and loop is None else None,
            total if total and any(total.taken) else None,
            (before_ns, after_ns),
            (script, copy) if copy else None,
            changed,
            compiled,
        )


def _of_turns(
    before: Sequence[Profile], after: Sequence[Profile], loop: Loop, by: By, metric: str | None, folds: bool
) -> Comparison:
    """The comparison of one turn of a loop."""
    from bragg.analyze.comparing.diff import By, compare_sets
    from bragg.analyze.comparing.per_turn import of_a_turn

    turns = [of_a_turn(run, of_it) for run, of_it in zip((*before, *after), loop.of_run, strict=True)]
    one, other = turns[: len(before)], turns[len(before) :]
    if by is By.PATH and folds:
        one, other = _folded(one, other)
    return replace(compare_sets(one, other, by, metric), of="a turn")


def _without_imports(runs: Sequence[Profile], metric: str | None) -> tuple[list[Profile], float]:
    """Runs without what imports took of the host's time, as `bragg view` shows them, and that time, ns."""
    from bragg.analyze.imports import imports_apart

    if metric not in (None, "host_time"):
        return list(runs), 0.0
    found = [imports_apart(run) for run in runs]
    return [ran for ran, _ in found], sum(imports_ns for _, imports_ns in found) / len(found)


def _folded(*sides: Sequence[Profile]) -> list[list[Profile]]:
    """Each side with its libraries put together: other runs may have more paths through them."""
    from bragg.views.text.folding import with_library_names

    return [[with_library_names(run) for run in side] for side in sides]


def _changed(before: Sequence[Profile], after: Sequence[Profile]) -> list[ChangedFinding]:
    """What findings say else; of sets none."""
    from bragg.analyze.report import answered
    from bragg.views.text.analysis_text import changed_findings

    if not len(before) == len(after) == 1:
        return []
    return changed_findings(answered(before[0]), answered(after[0]))


def _is_small(file: Path) -> bool:
    return file.is_file() and file.stat().st_size < _SMALL_BYTES


def _refuse_other_devices(found: _Difference) -> None:
    """A gate on the time of GPUs beside that of the host would judge nothing.

    Raises:
        UsageError: A GPU worked in the runs of one side alone.
    """
    before, after = (any(run.measured("gpu_time") for run in runs) for runs in (found.before, found.after))
    if before != after:
        raise UsageError(
            f"a GPU worked in the runs {'before' if before else 'after'} alone, so their times are not comparable",
            hint="Record both on one kind of machine, or say what to compare: --metric host_time",
        )


def _write_page(html: Path, found: _Difference) -> None:
    from bragg.views.text.units import bytes_text
    from bragg.views.web.page import page

    short = short_names(*found.names)
    with working(f"Making {html}"):
        packed = found.packed(*short)
    write_text(html, page([packed], " → ".join(short)))
    say([f"Wrote {html} ({bytes_text(html.stat().st_size)})"])
