"""A client of the Debug Adapter Protocol: what an IDE says to a debugger."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]


class DebugAdapter:
    """A connection to a debugger that listens on a local port.

    Args:
        port: Of the debugger.
        timeout_s: What to wait for a message at most.
    """

    def __init__(self, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._stream = self._socket.makefile("rb")
        self._sequence = 0
        self._waiting: list[Message] = []

    def close(self) -> None:
        """Leave the debugger."""
        self._stream.close()
        self._socket.close()

    def send(self, command: str, **arguments: Any) -> int:
        """Ask for something; gives the number of the question."""
        self._sequence += 1
        body = {"seq": self._sequence, "type": "request", "command": command, "arguments": arguments}
        text = json.dumps(body).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
        return self._sequence

    def ask(self, command: str, **arguments: Any) -> Message:
        """Ask for something and wait for the answer's body."""
        number = self.send(command, **arguments)
        answer = self._first(lambda message: message.get("request_seq") == number)
        assert answer["success"], answer
        body: Message = answer.get("body", {})
        return body

    def event(self, name: str) -> Message:
        """Wait for an event; gives its body."""
        body: Message = self._first(lambda message: message.get("event") == name).get("body", {})
        return body

    def _first(self, fits: Callable[[Message], bool]) -> Message:
        for message in self._waiting:
            if fits(message):
                self._waiting.remove(message)
                return message
        while not fits(message := self._read()):
            self._waiting.append(message)
        return message

    def _read(self) -> Message:
        size = 0
        while line := self._stream.readline().strip():
            if line.startswith(b"Content-Length:"):
                size = int(line.split(b":")[1])
        message: Message = json.loads(self._stream.read(size))
        return message
