"""The outcome of a check, with file names as other tools need them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from bragg.views.text.style import printable

if TYPE_CHECKING:
    from bragg.debug.findings import KernelFinding
    from bragg.debug.report import Report


@dataclass(frozen=True)
class Outcome:
    """The result of one check.

    Attributes:
        report: What was found.
        root: Where the check was started: files below it are named from there.
        problem: Why not everything was checked; empty: everything was.
    """

    report: Report
    root: Path
    problem: str = ""

    def relative(self, file: str) -> PurePath:
        """The name of a file from the root; as it is where it lies elsewhere."""
        return relative(file, self.root)


def relative(file: str, root: Path) -> PurePath:
    """The name of a file from a folder; as it is where it lies elsewhere."""
    whole = Path(os.path.normpath(root / file))
    return whole.relative_to(root) if whole.is_relative_to(root) else PurePath(file)


def message_of(finding: KernelFinding) -> str:
    """The problem and its fix, on one line."""
    fix = f"; fix: {finding.hint}" if finding.hint else ""
    return printable(f"{finding.kernel}: {finding.message}{fix}")


def text_of(finding: KernelFinding) -> str:
    """All that is said of a finding, in lines."""
    return "\n".join(map(printable, finding.lines()))
