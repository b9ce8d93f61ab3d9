"""Limits of memory that leave no room for bragg: NumPy and the native core need much more than Python itself."""

from __future__ import annotations

from bragg.errors import BackendUnavailable

_NEEDED_BYTES = 300 << 20


def memory_shortage() -> BackendUnavailable | None:
    """Why bragg itself cannot be loaded, if a limit of memory leaves no room for it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if not 0 <= limit < _NEEDED_BYTES:
        return None
    return BackendUnavailable(
        f"the limit of memory (ulimit -v: {limit >> 10} KB) leaves no room for bragg",
        hint="Raise it: bragg itself takes about 300 MB of addresses",
    )
