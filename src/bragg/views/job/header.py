"""The lines above a view of a job."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.model import Profile
from bragg.model.ranks.job import Job
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import Style, printable
from bragg.views.text.units import count_text, time_text

_N_HOSTS = 3


def job_header_lines(job: Job, profiles: Sequence[Profile], style: Style) -> list[str]:
    """What ran on how many ranks, where, and how long; two texts may take two lines each.

    Args:
        job: The job.
        profiles: One of each rank.
        style: How to decorate.
    """
    facts = RunFacts(profiles[0].meta)
    durations = [profile.run.duration_ns for profile in profiles if profile.run.duration_ns is not None]
    world = f" of {job.world}" if job.world and job.world != len(job.ranks) else ""
    hosts = ", ".join([*job.hosts[:_N_HOSTS], *["…"] * (len(job.hosts) > _N_HOSTS)])
    lasted = f"{time_text(min(durations))} to {time_text(max(durations))}" if durations else ""
    where = f"{count_text(len(job.hosts), 'host')}: {printable(hosts)}" if job.hosts else ""
    started = f"started by {printable(job.launcher)}" if job.launcher else ""
    what = [f"{count_text(len(job.ranks), 'rank')}{world}", where, lasted, started, f"backend {facts.backend}"]
    separator = " · " if style.unicode else "; "
    return [
        style.cut(f"{printable(str(job.directory))}: {facts.command or 'unknown command'}", style.width),
        *map(style.dim, style.wrap(separator.join(filter(None, what)), 2, "  ", separator)),
        *(map(style.dim, style.wrap(facts.versions, 2, "  ")) if facts.versions else []),
    ]
