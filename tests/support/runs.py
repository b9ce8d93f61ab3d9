"""Programs recorded as `bragg run` records them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from bragg import formats
from bragg.model import FrameKind, Profile
from bragg.record import RecordConfig, RunResult, run_target

# Lets a program wait until what it has done is in its capture: `wait_until_flushed`.
FLUSHED = f"import sys; sys.path.append({str(Path(__file__).parent)!r})\nfrom flushed import wait_until_flushed\n"
# How the line begins that a busy machine adds to what is said of a run.
IS_BUSY = "warning: the main thread ran "


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run.

    Attributes:
        result: What `run_target` returned.
        profiles: By file name, the main process's first.
        empty: Number of processes without a profile.
    """

    result: RunResult
    profiles: dict[str, Profile]
    empty: int

    @property
    def main(self) -> Profile:
        return next(iter(self.profiles.values()))

    def scopes(self) -> list[set[str]]:
        """Names of the scopes of each process, the main one's first."""
        return [names_of(profile, FrameKind.SCOPE) for profile in self.profiles.values()]


def names_of(profile: Profile, kind: FrameKind) -> set[str]:
    """Names of the frames of one kind that were entered or seen."""
    frames = profile.tree.frames
    return {frames.name[frame] for frame in profile.tree.frame if frames.kind[frame] == kind}


def entered(profile: Profile, name: str) -> int:
    """How often a scope or operator was entered, on all paths."""
    counts = profile.own("host_count")
    return sum(int(counts[node]) for node in range(len(profile.tree)) if profile.tree.label(node) == name)


class Recorder:
    """Writes programs into a directory and records them there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def script(self, program: str, name: str = "program.py") -> str:
        path = self.directory / name
        path.write_text(dedent(program))
        return str(path)

    def run(self, *argv: str, **options: Any) -> Run:
        """Record a command line with the CPU backend unless another one is asked for."""
        config = RecordConfig(**{"backend": "cpu", "output": f"{self.directory}/%s.bragg", **options})
        result = run_target(config, argv)
        finished = result.finish(formats.finish)
        return Run(result, {path.name: profile for path, profile in finished.profiles}, finished.empty)

    def program(self, program: str, *arguments: str, **options: Any) -> Run:
        return self.run(self.script(program), *arguments, **options)
