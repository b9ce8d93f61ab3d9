"""The result of one check, and what checks look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any


class State(Enum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Something is absent or different, and bragg does without it."""
    LIMITED = "limited"
    """Something that this machine could do is not possible."""
    BLOCKED = "blocked"
    """Nothing can be recorded."""


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes:
        name: What was checked.
        state: How much it matters.
        found: What was found.
        blocks: What is not possible because of it; empty when nothing is.
        fix: What to do about it; empty when nothing needs to be done.
    """

    name: str
    state: State
    found: str
    blocks: str = ""
    fix: str = ""

    @property
    def limits(self) -> bool:
        """Whether something is not possible because of it."""
        return bool(self.blocks or self.fix)


@dataclass(frozen=True)
class Surroundings:
    """What checks look at.

    Attributes:
        environ: Environment variables.
        root: Where `proc` and `sys` are.
        probe: What the probe of a child process said, see `bragg.cli.probe`.
    """

    environ: Mapping[str, str]
    root: Path = Path("/")
    probe: Mapping[str, Any] = field(default_factory=dict)

    def read(self, path: str) -> str | None:
        """The text of a file below the root; None when it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None


def ok(name: str, found: str) -> Check:
    """All is as it should be."""
    return Check(name, State.OK, found)


def note(name: str, found: str, *, blocks: str = "", fix: str = "") -> Check:
    """Something to know."""
    return Check(name, State.NOTE, found, blocks, fix)
