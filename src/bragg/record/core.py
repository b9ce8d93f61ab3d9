"""The native core, or an error that says what to do without it."""

from __future__ import annotations

try:
    import bragg._core as core
except ImportError as error:
    from bragg.errors import BackendUnavailable

    raise BackendUnavailable(
        f"the native core of bragg cannot be loaded: {error}",
        hint="Install bragg for this Python; profiles can be viewed without the core, but not recorded",
    ) from error

__all__ = ["core"]
