"""Errors of the drop-in. Each is also of the built-in types that the versions of Proton raise in its place."""
# ruff: noqa: N818
# The names say what happened; all of them are errors.

from __future__ import annotations

from bragg.errors import BackendUnavailable, UsageError

__all__ = ["InvalidArgument", "InvalidMetric", "ProfilerUnavailable", "UnbalancedScope", "UnknownSession"]


class InvalidArgument(UsageError, ValueError, RuntimeError):
    """An argument has a value that Proton does not know."""


class InvalidMetric(UsageError, ValueError, TypeError, RuntimeError):
    """A metric has a value that cannot be recorded, or is not what it was before."""


class ProfilerUnavailable(BackendUnavailable, ValueError, RuntimeError):
    """What the user asked to measure with cannot measure here."""


class UnbalancedScope(UsageError, IndexError, AttributeError, RuntimeError):
    """A scope ends that is not open."""


class UnknownSession(UsageError, IndexError, RuntimeError):
    """There is no such session, or it has no such phase."""
