"""The answer in a few lines: where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bragg.analyze.idle_paths import IDLE_METRICS, with_idle_paths
from bragg.analyze.imports import LEAST_IMPORTS, imports_apart, without_imports
from bragg.analyze.report import Answered
from bragg.analyze.wall.parts import wall_parts
from bragg.analyze.wall.steady import MOSTLY_IDLE, steady_profile
from bragg.analyze.wall.wall_time import Steady
from bragg.model import CallTree, FrameKind, Profile
from bragg.model.finding import Finding
from bragg.model.host_time import of_main_thread, own_work
from bragg.model.ids import NodeId
from bragg.model.regroup import without_readings
from bragg.views.terminal.flat_view import default_metrics, flat_view, table_lines
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.analysis_text import best_findings, best_lines
from bragg.views.text.below_findings import no_cause
from bragg.views.text.folding import FoldedProfile, fold_libraries
from bragg.views.text.folding_rules import library_of
from bragg.views.text.labels import Labels
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style
from bragg.views.text.training_steps import steps_line
from bragg.views.text.units import count_text, share_text, time_text
from bragg.views.text.waiting import waiting_lines, waits_mostly
from bragg.views.text.wall_line import wall_lines

_N_KERNELS, _N_KERNELS_BELOW_CAUSES = 5, 2
N_CAUSES = 3
"""Findings that a summary names."""
_N_CHANGES = 1  # of them say what to change
_KERNEL_METRICS = ("time", "count", "time_avg", "time_min", "time_max")
_N_HOST_PATHS = 5
_N_WARNINGS = 2
_WIDTH = 120  # where the output has none: whole paths would hide the rest
_LEAST_PATH_WIDTH = 24  # with less room beside the numbers, a path stands in its own line
_PATH_INDENT = " " * 4
# Of the whole: kernels and paths with less are no news, unless nothing has more.
_LEAST_SHARE, _LEAST_OF_PATHS = 0.001, 0.01
# Below this the host decides how long the program takes, and its paths are shown too.
_BUSY_GPU = 0.5
# Findings that save less than this of the time in which the GPU waits do not tell what it waits for.
_LEAST_EXPLAINED = 0.5
_N_HOST_PATHS_OF_IDLE_GPU = 2


def summary_lines(profile: Profile, style: Style, answered: Answered | None = None) -> list[str]:
    """What took the time, in at most 15 lines of 120 columns.

    Args:
        profile: A whole run.
        style: How to decorate, and the width to keep.
        answered: What bounds it, and findings: those that save most of what the GPU waits for stand instead of what
            the host did.
    """
    facts, parts = RunFacts(profile.meta), wall_parts(profile)
    steady = parts.steady if parts else None
    title = f"{facts.command or 'the program'} ran {facts.duration_text()}".rstrip()
    steps = steps_line(profile, steady)
    best = best_findings(answered, N_CAUSES) if answered else []
    bounds = list(best_lines(answered, best, style, _N_CHANGES)) if answered else []
    if answered and answered.bounds.host_ns and not best:
        bounds.append(no_cause(answered.bounds))
    with_host = not best or not _explain_waits(best, steady)
    return [
        style.bold(style.cut(title, style.width)),
        *wall_lines(parts, style),
        *style.paragraphs([steps] if steps else []),
        *bounds,
        *([] if steady or bounds or profile.run.kernel_error else _busy_line(facts)),
        *(_in_steady_state(profile, steady, style, with_host) or _hot_spots(profile, facts, style, steady, with_host)),
        *warning_lines(profile, style),
    ]


def _explain_waits(best: Sequence[Finding], steady: Steady | None) -> bool:
    waits = 1.0 - max(steady.busy.values(), default=0.0) if steady else 0.0
    return sum(finding.gain.share for finding in best if finding.gain) >= _LEAST_EXPLAINED * waits


def warning_lines(profile: Profile, style: Style) -> list[str]:
    """What the reader must know before trusting the numbers, in at most two lines."""
    warnings = list(RunFacts.of(profile).cautions())
    if len(warnings) > _N_WARNINGS:
        n_more = len(warnings) - _N_WARNINGS + 1
        warnings[_N_WARNINGS - 1 :] = [f"{count_text(n_more, 'more warning')}: bragg info shows all"]
    return [*map(style.warning, style.paragraphs(f"warning: {text}" for text in warnings))]


def _in_steady_state(profile: Profile, steady: Steady | None, style: Style, with_host: bool) -> list[str]:
    """The same of the steady state alone; empty where there is none, or no timeline of it."""
    part = steady_profile(profile, steady) if steady else None
    if steady is None or part is None or not part.measured("gpu_time"):
        return []
    busy = max(steady.busy.values())
    title = "in the steady state the GPU waited for the host:" if busy < MOSTLY_IDLE else "in the steady state:"
    whole_ns = float(steady.duration_ns)
    host = _hottest_paths(part, "host_time", _N_HOST_PATHS_OF_IDLE_GPU + 1, style, whole_ns)
    kernels = _kernels(part, style, ", in the steady state", with_host)
    waiting = style.paragraphs(waiting_lines(profile))
    if not with_host:
        return [*kernels, *waiting]
    if busy < MOSTLY_IDLE:
        return [title, *host, *kernels, *waiting]
    return [title, *kernels, *_hottest_paths(part, "gpu_time", 1, style), *waiting]


def _kernels(profile: Profile, style: Style, of_what: str, with_host: bool) -> list[str]:
    """What took most of the GPU's time, under a title that says of which part of the run."""
    n_rows = _N_KERNELS if with_host else _N_KERNELS_BELOW_CAUSES
    options = ViewOptions(max_lines=n_rows, threshold=_LEAST_SHARE)
    view = flat_view(without_readings(profile), options, default_metrics(style, _KERNEL_METRICS))
    return table_lines(view, style, f"name{of_what}")


def _busy_line(facts: RunFacts) -> Iterator[str]:
    if facts.gpu_busy:
        shares = ", ".join(f"GPU {device} busy {share_text(share)}" for device, share in facts.gpu_busy.items())
        yield f"{shares} of the {time_text(facts.run.gpu_span_ns)} from first to last GPU work"


def _hot_spots(
    profile: Profile, facts: RunFacts, style: Style, steady: Steady | None, with_host: bool
) -> Iterator[str]:
    has_host_time = profile.measured("host_time")
    if profile.measured("gpu_time"):
        busy = {str(device): share for device, share in steady.busy.items()} if steady else facts.gpu_busy
        kernels = _kernels(profile, style, ", in the whole run" if steady else "", with_host)
        sentences = waiting_lines(profile)
        waiting = style.paragraphs(sentences)
        if not with_host:
            yield from [*kernels, *waiting]
            return
        host: list[str] = []
        if has_host_time and max(busy.values(), default=1.0) < _BUSY_GPU:
            ran, n_paths = without_imports(profile), _N_HOST_PATHS_OF_IDLE_GPU - len(sentences)
            of_what = "of host_time without imports" if ran is not profile else ""
            host = list(_hottest_paths(ran, "host_time", n_paths, style, of_what=of_what))
        host = _waited_for(profile, steady, style) or host
        hottest = list(_hottest_paths(profile, "gpu_time", 1, style))
        # Where the GPU waits for the host in the steady state, what the host does stands first.
        yield from [*host, *kernels, *hottest, *waiting] if steady else [*kernels, *hottest, *host, *waiting]
    elif has_host_time:
        yield from _hot_spots_of_host(profile, style)
    else:
        yield "neither GPU time nor host time was recorded"


def _waited_for(profile: Profile, steady: Steady | None, style: Style) -> list[str]:
    """What an idle GPU waited for in the steady state, where the recorder added it up; else empty."""
    if steady is None or not len(profile.idle) or max(steady.busy.values()) >= MOSTLY_IDLE:
        return []
    found = with_idle_paths(profile, steady=steady)
    of_host = np.arange(len(found.tree)) < len(profile.tree)
    time = found.metric(IDLE_METRICS[0])
    found = replace(found, metrics={time.name: replace(time, own=np.where(of_host, time.own, 0))})
    whole_ns = float(steady.duration_ns) * len(steady.busy)
    paths = _hottest_paths(found, IDLE_METRICS[0], _N_HOST_PATHS_OF_IDLE_GPU + 1, style, whole_ns)
    waited = "the GPU waited" if len(steady.busy) == 1 else f"{count_text(len(steady.busy), 'GPU')} waited on average"
    return [f"in the steady state {waited} for the host: for these and the code before them:", *paths]


def _hot_spots_of_host(profile: Profile, style: Style) -> Iterator[str]:
    """Without a GPU: long imports in a sentence, then what the program did and what it waited for, the larger first.

    What samples found other threads in is no part of it, as in what bounds the program, which names them.
    """
    of_main = of_main_thread(profile)
    ran, imports_ns = imports_apart(of_main)
    total_ns = whole_ns = of_main.total("host_time")
    of_what, imports = "of host_time", []
    if imports_ns > LEAST_IMPORTS * total_ns:
        whole_ns -= imports_ns
        took = f"imports took {time_text(imports_ns)}, {share_text(imports_ns / total_ns)} of host_time"
        of_what, imports = "of it", [f"{took}; of the other {time_text(whole_ns)}:"]
    waiting = style.paragraphs(waiting_lines(profile))
    hottest = list(_hottest_paths(ran, "host_time", _N_HOST_PATHS, style, whole_ns, of_what))
    yield from [*waiting, *imports, *hottest] if waits_mostly(profile) else [*imports, *hottest, *waiting]


def _hottest_paths(
    profile: Profile, metric: str, n_paths: int, style: Style, whole: float | None = None, of_what: str = ""
) -> Iterator[str]:
    """The call paths with the largest own values, as shares of a whole; None: of all."""
    if metric not in profile.metrics:
        return
    folded = fold_libraries(profile)
    own, total = own_work(folded.profile, metric), whole or folded.profile.total(metric)
    hottest = np.argsort(-own, kind="stable")[: max(n_paths, 0)]
    least = min(_LEAST_OF_PATHS * total, float(own.max()))
    for node in hottest[(own[hottest] > 0) & (own[hottest] >= least)].tolist():
        share = float(own[node]) / total
        of = of_what or ("of it" if whole else f"of {metric}")
        numbers = f"{time_text(float(own[node])):>9}  {share_text(share):>7} {of}  "
        width = style.width or _WIDTH
        if width - len(numbers) >= _LEAST_PATH_WIDTH:
            yield style.heat(numbers, share) + _path_text(folded, node, style, width - len(numbers))
        else:
            yield style.heat(numbers.rstrip(), share)
            yield _PATH_INDENT + _path_text(folded, node, style, width - len(_PATH_INDENT))


def _path_text(folded: FoldedProfile, node: NodeId, style: Style, room: int) -> str:
    """The callers of a node and itself.

    Where there is no room the outermost are left out, then libraries, last the innermost line of the program.
    """
    tree = folded.profile.tree
    labels = Labels(tree.frames)
    if node == 0:
        return style.cut(labels.own_text(tree.frame_of(node)), room)
    path = tree.path(node)[1:]
    names = [f"{folded.name(step, labels)} {labels.place(tree.frame_of(step))}".rstrip() for step in path]
    own = max((at for at, step in enumerate(path) if _is_of_program(tree, step)), default=0)
    kept = list(range(len(names)))
    for left_out in (*range(own), *range(own + 1, len(names) - 1), own):
        if style.width_of(_joined(names, kept, style)) <= room or len(kept) == 1:
            break
        kept.remove(left_out)
    return style.cut(_joined(names, kept, style), room)


def _is_of_program(tree: CallTree, node: NodeId) -> bool:
    file = tree.frames.file[tree.frame_of(node)]
    return tree.kind[node] == FrameKind.PYTHON and bool(file) and not library_of(file)


def _joined(names: Sequence[str], kept: Sequence[int], style: Style) -> str:
    """The names that are kept, with an ellipsis for those left out before each."""
    before = [-1, *kept]
    parts = [
        part
        for last, at in zip(before, kept, strict=False)
        for part in ([style.ellipsis] if at > last + 1 else []) + [names[at]]
    ]
    return style.arrow.join(parts)
