"""Errors a user can act on: one line that names the cause, a hint that names the fix, an exit code."""
# ruff: noqa: N818
# The names say what happened; all of them are errors.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "BackendUnavailable",
    "BadFile",
    "BraggError",
    "GateExceeded",
    "NothingRecorded",
    "RecordingFailed",
    "SubInterpreter",
    "TritonMissing",
    "UsageError",
]


class BraggError(Exception):
    """Base of every error that bragg raises on purpose.

    Attributes:
        message: What is wrong, one line.
        hint: What to do about it; empty when there is nothing to do.
        exit_code: Exit status of the command line.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RecordingFailed(BraggError):
    """The recorder itself failed; the target's own failures are not errors of bragg."""

    exit_code = 1


class UsageError(BraggError):
    """The request cannot be understood or does not fit the profile it was made of."""

    exit_code = 2


class BackendUnavailable(BraggError):
    """The environment lacks what a backend needs: a library, a device, a permission.

    Attributes:
        tried: The places that were looked at, in order.
    """

    exit_code = 4

    def __init__(self, message: str, *, tried: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.tried = tuple(tried)


class SubInterpreter(BackendUnavailable):
    """The main interpreter of a process is recorded, and this one is another."""


class TritonMissing(BackendUnavailable):
    """Triton is not installed."""

    def __init__(self) -> None:
        super().__init__("Triton is not installed", hint="pip install triton, which has packages for Linux alone")


class GateExceeded(BraggError):
    """A limit that the user set was exceeded."""

    exit_code = 5


class BadFile(BraggError):
    """A file is missing, damaged, of an unknown kind, or cannot be written."""

    exit_code = 6


class NothingRecorded(BraggError):
    """A recording ended without a single measurement."""

    exit_code = 7
