"""What a session has recorded so far, by phase."""

from __future__ import annotations

from typing import Any

from bragg.formats.encodings import msgpack
from bragg.proton.flags import flags
from bragg.proton.output.view import proton_tree
from bragg.proton.recording import sessions

__all__ = ["advance_phase", "clear", "get", "get_msgpack", "is_phase_complete"]


def get(session: int | None = 0, phase: int = 0) -> list[Any] | None:
    """The call tree and the devices, as JSON values.

    Args:
        session: Its number; None, as `start` returns it when profiling is disabled, gives None.
        phase: Which part of the session; 0 is the first.

    Raises:
        IndexError: There is no such session, or it has no data of this phase.
        RuntimeError: It keeps a trace.
    """
    found = _find(session, "be retrieved")
    return None if found is None else proton_tree(found.phase_profile(phase))


def get_msgpack(session: int | None = 0, phase: int = 0) -> bytes | None:
    """The same as `get`, in MessagePack."""
    tree = get(session, phase)
    return None if tree is None else msgpack.encode(tree)


def advance_phase(session: int | None = 0) -> int | None:
    """Begin the next phase.

    Returns:
        Its number.

    Raises:
        IndexError: There is no such session.
    """
    found = _find(session, "advance phase")
    return None if found is None else found.advance_phase()


def is_phase_complete(session: int | None = 0, phase: int = 0) -> bool:
    """Whether a phase is over and all that was launched in it is recorded.

    Raises:
        IndexError: There is no such session.
    """
    found = _find(session, "check phase completion status")
    return found is not None and found.is_phase_complete(phase)


def clear(session: int | None = 0, phase: int = 0, clear_up_to_phase: bool = False) -> None:
    """Forget what was recorded in a phase.

    Args:
        session: Its number.
        phase: Which part of the session.
        clear_up_to_phase: Forget the phases before it, too.

    Raises:
        IndexError: There is no such session.
    """
    found = _find(session, "be cleared")
    if found is not None:
        found.clear(phase, up_to=clear_up_to_phase)


def _find(session: int | None, done: str) -> sessions.AnySession | None:
    if session is None:
        return None
    if flags.command_line and session != 0:
        raise ValueError(f"Only one session can {done} when running from the command line.")
    return sessions.find(session)
