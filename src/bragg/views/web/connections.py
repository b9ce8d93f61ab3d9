"""Connections to the server: not more than it has threads for, and those with the token before those without."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

# A thread that waits for a request ends at once when its connection does.
_PATIENCE_S = 1.0


class Connections:
    """The open connections, each with a thread.

    Anybody on this machine can connect, and send nothing: such connections end, the oldest first, when another one
    needs the room. One that has sent a request with the token stays.

    Threads: any.

    Args:
        most: How many may be open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # By connection, in the order of their beginning, whether it may stay.
        self._is_trusted: dict[socket.socket, bool] = {}
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._is_trusted)

    def enter(self, connection: socket.socket) -> bool:
        """Take a connection in; False when there is no room for it."""
        with self._changed:
            if len(self) >= self._most and not self._end_oldest_stranger():
                return False
            has_room = self._changed.wait_for(lambda: len(self) < self._most, _PATIENCE_S)
            if has_room:
                self._is_trusted[connection] = False
            return has_room

    def trust(self, connection: socket.socket) -> None:
        """Let a connection stay."""
        with self._changed:
            self._is_trusted[connection] = True

    def leave(self, connection: socket.socket) -> None:
        """Forget a connection whose thread ends."""
        with self._changed:
            self._is_trusted.pop(connection, None)
            self._changed.notify_all()

    def _end_oldest_stranger(self) -> bool:
        stranger = next((known for known, is_trusted in self._is_trusted.items() if not is_trusted), None)
        if stranger is None:
            return False
        with suppress(OSError):  # The other side has ended it.
            stranger.shutdown(socket.SHUT_RDWR)
        return True
