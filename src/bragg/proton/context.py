"""The call path of this thread."""

from __future__ import annotations

from bragg.proton.flags import flags
from bragg.proton.recording import open_scopes, sessions

__all__ = ["depth"]


def depth(session: int | None = 0) -> int | None:
    """Number of scopes that are open on this thread; None when nothing is profiled.

    Raises:
        IndexError: There is no such session.
    """
    if not flags.profiling_on or session is None:
        return None
    sessions.find(session)
    return open_scopes.depth()
