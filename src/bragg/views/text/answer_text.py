"""The answer to where the time went, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bragg.analyze.answer import Answer, HotSpot
from bragg.analyze.idle import Idle
from bragg.analyze.imports import without_imports
from bragg.analyze.wall.steady import MOSTLY_IDLE
from bragg.model import FrameKind, Profile
from bragg.model.host_time import own_work
from bragg.model.ids import FrameId
from bragg.views.text.folding import fold_libraries
from bragg.views.text.labels import Labels
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import PLAIN, printable
from bragg.views.text.training_steps import steps_line
from bragg.views.text.units import count_text, share_text, time_text, value_text
from bragg.views.text.waiting import waiting_lines, waits_mostly
from bragg.views.text.wall_line import wall_line

_METRIC_NAMES = {"gpu_time": "of GPU time", "host_time": "of host time", "samples": "samples"}
_MAX_NAME = 60
# A device that idles less than this is busy: there is nothing to explain.
_LITTLE = 0.05


def sentences(profile: Profile, answer: Answer) -> list[str]:
    """What took the time and what bounds it, what a step consists of, who waited for whom, what recording cost."""
    if answer.metric is None:
        return ["No time was recorded."]
    facts, parts = RunFacts(profile.meta), answer.wall
    steps = steps_line(profile, parts.steady if parts else None)
    hottest = f"{_hottest_text(profile, answer)}{_bound_text(answer)}."
    idle = [*idle_sentences(profile, answer.idle), *host_sentences(profile, answer)]
    waiting = [f"{line[0].upper()}{line[1:]}." for line in waiting_lines(profile)]
    waits_first = answer.metric == "host_time" and waits_mostly(profile)
    is_idle = parts is not None and parts.steady is not None and max(parts.steady.busy.values()) < MOSTLY_IDLE
    return [
        *([f"Of the wall time: {wall_line(parts)}."] if parts else []),
        *(waiting if waits_first else []),
        *([*idle, hottest] if is_idle else [hottest]),
        *([f"Imports took {time_text(answer.imports_ns)} more."] if answer.imports_ns else []),
        *([f"{steps[0].upper()}{steps[1:]}."] if steps else []),
        *([] if is_idle else idle),
        *([] if waits_first else waiting),
        *([f"{_cost_text(facts)}."] if facts.completeness.is_known else []),
    ]


def host_sentences(profile: Profile, answer: Answer) -> list[str]:
    """Where the host was in the steady state of a GPU that waited for it."""
    spots, place = (answer.host, "in") if answer.host else (answer.waits, "for")
    if not spots or not answer.idle or max(idle.share for idle in answer.idle) < _LITTLE:
        return []
    first, *others = (f"{share_text(spot.share)} of the steady state {place} {_name(profile, spot)}" for spot in spots)
    others = [text.replace(" of the steady state", "") for text in others]
    texts = [first, *others]
    text = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    gpu = "The GPU" if len(answer.idle) == 1 else f"GPU {answer.waits_of}"
    return [f"The host was {text}." if answer.host else f"{gpu} waited {text}."]


def fact_rows(profile: Profile) -> list[tuple[str, str]]:
    """Name and value of what is known of the run."""
    facts = RunFacts(profile.meta)
    rows = [
        ("Command", facts.command),
        ("Duration", facts.duration_text()),
        ("Machine", facts.machine),
        ("Backend", facts.backend),
        ("Recorded by", facts.recorder or printable(f"bragg {profile.run.bragg}").rstrip()),
        ("Versions", facts.versions),
        ("Platform", printable(profile.run.platform)),
        ("Completeness and overhead", facts.cost),
        ("Call paths", f"{len(profile.tree):,}"),
        ("Timeline", f"{count_text(len(profile.slices), 'slice')}" if len(profile.slices) else ""),
    ]
    return [(name, value) for name, value in rows if value]


def lack_lines(profile: Profile, answer: Answer) -> list[str]:
    """Warnings to read before the numbers, and what was not recorded."""
    warnings = list(RunFacts.of(profile).cautions())
    if answer.metric is None:
        return [*warnings, "No time was recorded: only call paths and counts are shown."]
    return [*warnings, *_not_recorded(profile, answer)]


def _not_recorded(profile: Profile, answer: Answer) -> Iterator[str]:
    if answer.metric != "gpu_time":
        yield "No GPU time was recorded. If there is a GPU, bragg doctor says why."
    elif answer.roofs is None:
        yield (
            "No kernel has flops or bytes, so how near they come to the peak of the GPU is not known. bragg run "
            "--counters measures bytes; or give both by launch_metadata of triton.jit or bragg.scope(name, metrics)."
        )
    if not len(profile.slices):
        yield "No timeline was recorded: bragg run --data trace."


def _hottest_text(profile: Profile, answer: Answer) -> str:
    if not answer.hottest:
        return f"{time_text(answer.total)} {_METRIC_NAMES[answer.metric or '']}, all of it waiting"
    first, *others = answer.hottest
    knows_parts = answer.wall is not None and answer.wall.steady is not None
    part = " in the steady state" if answer.is_steady else " in the whole run" if knows_parts else ""
    whole = f"{value_text(answer.total, _unit(profile, answer))} {_METRIC_NAMES[answer.metric or '']}{part}"
    parts = [f"{_name(profile, first)} took {share_text(first.share)} of {whole}"]
    parts += [f"{_name(profile, spot)} {share_text(spot.share)}" for spot in others]
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    has_copies = bool((profile.tree.kind == FrameKind.MEMORY).any())
    noun = "other function" if answer.metric != "gpu_time" else "other" if has_copies else "other kernel"
    return f"{text}; {count_text(answer.n_others, noun)} the rest" if answer.n_others else text


def _bound_text(answer: Answer) -> str:
    roofs = answer.roofs
    if roofs is None:
        return ""
    bound, share = max(("compute", roofs.compute), ("memory", roofs.memory), key=lambda item: item[1])
    bounds = f"; {share_text(share)} is in {bound}-bound kernels, and" if share else ";"
    return f"{bounds} kernels reach {share_text(roofs.util)} of their roofs"


def idle_sentences(profile: Profile, found: Sequence[Idle]) -> list[str]:
    """The device that idled most, and the range of the others."""
    if not found:
        return []
    worst, *others = sorted(found, key=lambda idle: -idle.share)
    if not others:
        return [f"{_idle_text(worst, profile)}."]
    range_text = share_text(others[0].share)
    if len(others) > 1:
        range_text = f"{share_text(others[-1].share)} to {range_text}"
    return [f"{_idle_text(worst, profile)}; {count_text(len(others), 'other GPU')} idled {range_text}."]


def _idle_text(idle: Idle, profile: Profile) -> str:
    share = idle.share
    owner = "" if idle.process is None else f" of process {idle.process}"
    span = "steady state" if idle.is_steady else f"{time_text(idle.span_ns)} from its first to its last work"
    text = f"GPU {idle.device}{owner} idled {time_text(idle.idle_ns)}, {share_text(share)} of the {span}"
    if share < _LITTLE:
        return text
    reasons = ", ".join(_reasons(idle))
    if reasons:
        return f"{text}, in {count_text(idle.n_gaps or 0, 'pause')}: {reasons}"
    busiest = "" if idle.is_steady else _busiest_on_host(profile)
    return f"{text}; {busiest}" if busiest else text


def _busiest_on_host(profile: Profile) -> str:
    """The library or function in which the host spent most of its time; empty when that was not recorded."""
    if "host_time" not in profile.metrics or profile.total("host_time") <= 0:
        return ""
    folded = fold_libraries(without_imports(profile))
    labels = Labels(folded.profile.tree.frames)
    own, frame = own_work(folded.profile, "host_time"), folded.profile.tree.frame
    by_frame = np.bincount(frame, weights=own, minlength=len(folded.profile.tree.frames))
    busiest = FrameId(int(by_frame.argmax()))
    if by_frame[busiest] <= 0:
        return ""
    share = share_text(float(by_frame[busiest]) / folded.profile.total("host_time"))
    return f"meanwhile the host spent {share} of its time in {_cut(labels.in_sentence(busiest))}"


def _reasons(idle: Idle) -> Iterator[str]:
    if not idle.idle_ns or idle.late_launch_ns is None or idle.queued_ns is None:
        return
    waited, full = idle.waited_ns or 0.0, idle.full_queue_ns or 0.0
    for lasts_ns, reason in (
        (idle.late_launch_ns, "waiting for the host to launch"),
        (waited, "waiting for another stream, copy, event or program"),
        (full, "between pieces of work that were both queued"),
        (idle.queued_ns - waited - full, "between a launch and its start"),
        (idle.idle_ns - idle.late_launch_ns - idle.queued_ns, "for reasons that the timeline does not show"),
    ):
        if (share := lasts_ns / idle.idle_ns) >= _LITTLE:
            yield f"{share_text(share)} {reason}"


def _cost_text(facts: RunFacts) -> str:
    completeness = facts.completeness
    if completeness.is_running and not completeness.missing:
        what = "The program is still running: numbers are of its run so far"
    else:
        what = printable(f"The recording is {completeness.word}")
    return f"{what}, {facts.overhead_text}" if facts.overhead_text else what


def _name(profile: Profile, spot: HotSpot) -> str:
    name = _cut(Labels(profile.tree.frames, with_device=False).own_text(spot.frame))
    return f"code before {name}" if spot.is_before else name


def _cut(name: str) -> str:
    return PLAIN.cut(name, _MAX_NAME)


def _unit(profile: Profile, answer: Answer) -> str:
    return profile.metric(answer.metric or "").unit
