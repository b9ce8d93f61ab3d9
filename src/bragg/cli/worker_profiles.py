"""Profiles of a run's processes as files: workers of data loaders stand in that of the process that started them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bragg import formats
from bragg.grouping.workers import is_loader_worker, with_workers
from bragg.model import Profile


def with_folded_workers(profiles: Sequence[tuple[Path, Profile]], pattern: str) -> list[tuple[Path, Profile]]:
    """The profiles of a run without files of workers, whose content is in the profile of their parent.

    Files of workers stay where the user names each process (`%p`), and beside timelines, which are written without
    being held in memory.

    Args:
        profiles: Path and content of each, the main process's first.
        pattern: As in `RecordConfig.output`.
    """
    if "%p" in pattern:
        return list(profiles)
    by_pid = {profile.run.pid: number for number, (_, profile) in enumerate(profiles)}
    workers: dict[int, list[int]] = {}
    for number, (_, profile) in enumerate(profiles):
        parent = by_pid.get(profile.run.parent_pid, number)
        if parent != number and is_loader_worker(profile) and not profiles[parent][1].run.is_trace:
            workers.setdefault(parent, []).append(number)
    found = list(profiles)
    for parent, numbers in workers.items():
        path, profile = profiles[parent]
        ordered = sorted((profiles[number][1] for number in numbers), key=lambda each: each.run.started_ns or 0)
        found[parent] = path, with_workers(profile, ordered)
        formats.export(found[parent][1], "bragg", path)
        for number in numbers:
            profiles[number][0].unlink()
    gone = {number for numbers in workers.values() for number in numbers}
    return [item for number, item in enumerate(found) if number not in gone]
