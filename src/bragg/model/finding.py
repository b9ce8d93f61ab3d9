"""What a rule of the analysis or a checker of the debugger found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

__all__ = ["Finding", "Severity"]


class Severity(IntEnum):
    """How much a finding matters; a higher number matters more."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True)
class Finding:
    """One statement about a program.

    Attributes:
        rule: Name of the rule or checker that found it.
        severity: How much it matters.
        message: What is wrong, with the evidence; one line.
        hint: What to do about it; may be empty.
        node: The call path it is about; None when it is about the whole profile.
        kernel: Name of the kernel it is about; empty: of none.
        file: Source file of the line it is about; empty: of none.
        line: That line, from 1; 0: of none.
    """

    rule: str
    severity: Severity
    message: str
    hint: str = ""
    node: int | None = None
    kernel: str = ""
    file: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """JSON values; of the place in a kernel only what there is."""
        values = {**asdict(self), "severity": int(self.severity)}
        return {name: value for name, value in values.items() if value or name not in ("kernel", "file", "line")}

    @property
    def text(self) -> str:
        """Message and hint as one line; a hint that introduces itself (`where: ...`) is a clause of its own."""
        separator = "; " if ": " in self.hint else ": "
        return f"{self.message}{separator}{self.hint}" if self.hint else self.message
