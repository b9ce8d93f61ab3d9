"""Which part of a run is shown: all of it, or the steady state alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bragg.errors import NothingRecorded, UsageError

if TYPE_CHECKING:
    from bragg.analyze.causes.evidence import Evidence
    from bragg.analyze.wall.wall_time import Steady
    from bragg.model import Profile
    from bragg.views.terminal.view_options import ViewOptions


PARTS = ("all", "steady")
_WITHOUT_READINGS = "the copies that read the clocks inside kernels are left out; with them: --part all"
_WHOLE = "the whole run; its steady state alone: --part steady"
_KERNELS = "kernels of the steady state; what the GPU waited for: -m host_time --part steady; the whole run: --part all"
_KERNELS_OF_RUN = "kernels of the whole run; what the GPU waited for in the steady state: bragg view without --flat"
_OF_HOST = ("host_time", "gpu_time", "gpu_count")


@dataclass(frozen=True, eq=False)
class ShownPart:
    """A part of a run, and how it is shown.

    Attributes:
        profile: What to show.
        options: How.
        notes: What the reader must know of the choice.
    """

    profile: Profile
    options: ViewOptions
    notes: tuple[str, ...] = ()


def shown_part(evidence: Evidence, options: ViewOptions, wanted: str | None, *, by_kernel: bool = False) -> ShownPart:
    """The steady state if it is wanted; unless told otherwise, the host's time in it where the GPU waited for the host.

    Of a program without a GPU it is what it did once it had imported its modules. Unless all is wanted, it is without
    the copies by which clocks in kernels are read.

    Args:
        evidence: Of a whole run.
        options: What is wanted of it.
        wanted: One of `PARTS`; None: as is best.
        by_kernel: A table of kernels is wanted, whatever the GPU waited for.

    Raises:
        UsageError: The steady state is wanted, and not known.
    """
    from bragg.model.regroup import without_readings

    if wanted == "all":
        return ShownPart(evidence.profile, options)
    program = without_readings(evidence.profile)
    part = _best_part(evidence, program, options, wanted, by_kernel=by_kernel)
    return part if program is evidence.profile else replace(part, notes=(*part.notes, _WITHOUT_READINGS))


def _best_part(
    evidence: Evidence, profile: Profile, options: ViewOptions, wanted: str | None, *, by_kernel: bool
) -> ShownPart:
    steady = evidence.steady
    if wanted is None and (ran := part_without_imports(profile, options)):
        return ran
    if wanted is None and not _is_better(profile, options, steady):
        is_part_known = steady and len(profile.slices)
        return ShownPart(profile, options, (_WHOLE,) if is_part_known else ())
    part = _steady_part(evidence, profile, steady) if steady else None
    if part is None and wanted is not None:
        lacking = "no timeline of its steady state" if steady else "no steady state"
        raise UsageError(f"this profile has {lacking}", hint=_how_to_get_one(profile))
    if part is None and by_kernel:
        return ShownPart(profile, options, (_KERNELS_OF_RUN,))
    if part is None:
        return _of_sums(profile, options, steady)
    if wanted is None and by_kernel:
        return ShownPart(part, options, (_KERNELS,))
    if wanted is not None:
        for name in {*options.metrics, *filter(None, [options.sort])} & profile.metrics.keys() - part.metrics.keys():
            raise UsageError(f"{name} is not known of the steady state alone", hint="Of the whole run: --part all")
        return ShownPart(part, options, ("the steady state alone; the whole run: --part all",))
    note = "the GPU waited for the host: this is the steady state, by host time; the whole run: --part all"
    return ShownPart(part, replace(options, metrics=_OF_HOST), (note,))


def _how_to_get_one(profile: Profile) -> str:
    if not profile.measured("gpu_time"):
        return "It is that of a GPU, and none worked here; what imports took is left out by default"
    if len(profile.slices):
        return "Its timeline shows no work that is repeated often enough; the whole run: --part all"
    return "Record its timeline: bragg run --data trace"


def _steady_part(evidence: Evidence, profile: Profile, steady: Steady) -> Profile | None:
    """The steady state of a profile, which is that of the evidence if this is the same; None: there is no timeline."""
    from bragg.analyze.wall.steady import steady_profile

    is_known = profile is evidence.profile and evidence.is_steady
    return evidence.part if is_known else steady_profile(profile, steady)


def part_without_imports(profile: Profile, options: ViewOptions) -> ShownPart | None:
    """Where there is host time alone, what imports have not taken; None: there were none, or more was asked for.

    To name `host_time`, which is shown anyway, is to ask for no more.
    """
    from bragg.analyze.imports import imports_apart
    from bragg.views.text.units import share_text, time_text

    is_asked = options.metrics[:1] not in ((), ("host_time",)) or options.sort not in (None, "host_time", "name")
    ran, imports_ns = (profile, 0.0) if is_asked else imports_apart(profile)
    if not imports_ns or not _has_paths(ran, options):
        return None
    share = share_text(imports_ns / profile.total("host_time"))
    note = f"imports took {time_text(imports_ns)}, {share} of host_time, and are left out; with them: --part all"
    return ShownPart(ran, options, (note,))


def _has_paths(profile: Profile, options: ViewOptions) -> bool:
    """Whether call paths that the reader asks for took time; if none did, those of imports may be meant."""
    from bragg.views.terminal.filters import filter_paths

    try:
        return filter_paths(profile, options.include, options.exclude).profile.total("host_time") > 0
    except NothingRecorded:
        return False


def _of_sums(profile: Profile, options: ViewOptions, steady: Steady | None) -> ShownPart:
    """What the GPU waited for in the steady state, where the recorder added it up; else the host's time in the run."""
    from bragg.analyze.idle_paths import IDLE_METRICS, with_added_up_idle

    if found := with_added_up_idle(profile, steady):
        note = "the GPU waited for the host: for these call paths and the code before them, in the steady state"
        others = "the whole run: -m gpu_time, -m host_time"
        return ShownPart(found, replace(options, metrics=IDLE_METRICS), (f"{note}; {others}",))
    note = "the GPU waited for the host: host_time is of the whole run; of the steady state: bragg run --data trace"
    return ShownPart(profile, replace(options, metrics=_OF_HOST), (note,))


def _is_better(profile: Profile, options: ViewOptions, steady: Steady | None) -> bool:
    """Whether the GPU was mostly idle in a steady state, and the reader has asked for no metric."""
    from bragg.analyze.wall.steady import is_host_first

    return not options.metrics and not options.sort and is_host_first(profile, steady)
