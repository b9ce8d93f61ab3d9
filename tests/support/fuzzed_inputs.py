"""Hostile inputs that are no files of profiles: readings of clocks, findings, and requests to servers."""

from __future__ import annotations

import asyncio
import io
import json
import random
import socket
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from bragg import formats
from bragg.cli.console import JSON_SCHEMA
from bragg.cli.main import main
from bragg.errors import BadFile
from bragg.model import Confidence, Finding, Gain, Place, Quantity, Severity
from bragg.model.ids import NodeId
from bragg.record.instrument.buffers import Plan
from bragg.record.instrument.summing import summed
from bragg.views.web.server import ProfileServer
from bragg.views.web.shelf import Shelf
from tests.support.captures import small_capture
from tests.support.clock_readings import KERNEL, launch

__all__ = ["FINDING", "ask_mcp", "change_request", "clock_readings", "mcp_calls", "read_clocks", "requests", "send"]

FINDING = Finding(
    "out-of-bounds",
    Severity.WARNING,
    "the kernel reads beyond x",
    hint="Add a mask",
    node=NodeId(1),
    kernel="add",
    file="add.py",
    line=12,
    evidence=(Quantity("elements", 3.0),),
    places=(Place("add.py", 14),),
    gain=Gain(100_000.0, 1_000_000.0),
    confidence=Confidence.PROVEN,
)

_WARPS = 4
_PLAN = Plan(blocks=_WARPS // 2, warps=2, header_shift=0, frame_shift=0)
_TOKEN = "token"
_N_CALLS = 10  # of a session
_WORDS = (b"GET", b"POST", b"/", b"//", b"%2e%2e", b"..", b"\r\n", b"\r\n\r\n", b" ", b"?", b":", b"\x00", b"HTTP/9.9")


def clock_readings() -> bytes:
    """Headers of the warps of a launch, then their frames."""
    warps, _ = launch([0, 5, 1000, 17])
    headers = b"".join(warp.header(number // 2, 3) for number, warp in enumerate(warps))
    return headers + b"".join(warp.memory.tobytes() for warp in warps)


def read_clocks(path: Path, *, as_page: bool) -> None:
    """What a program that writes where it likes has left in the memory for readings, summed up."""
    image = path.read_bytes().ljust(_PLAN.header_bytes + _PLAN.frame_bytes, b"\0")
    headers, frames = image[: _PLAN.header_bytes], image[_PLAN.header_bytes :][: _PLAN.frame_bytes]
    try:
        json.dumps(summed(headers, frames, KERNEL, _PLAN, has_timeline=as_page))
    except ValueError as error:
        raise BadFile(str(error), hint="Nothing of this launch is shown") from None


def requests() -> bytes:
    """Two requests of one connection."""
    return b"".join(
        f"GET /{_TOKEN}/{place} HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAccept: */*\r\n\r\n".encode()
        for place in ("profile/0", "profiles")
    )


def change_request(choose: random.Random, content: bytes) -> bytes:
    """Words are others, are gone, or are there many times."""
    words = content.split(b" ")
    for _ in range(choose.choice((1, 2))):
        place = choose.randrange(len(words))
        word = choose.choice(_WORDS)
        words[place] = choose.choice((b"", word, words[place] + word, words[place] * 200, word * 30_000))
    return b" ".join(words)


class _Connection:
    """A socket that has sent all of its requests, and takes all of the answers."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent
        self.first_lines: set[bytes] = set()

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._sent)

    def sendall(self, content: bytes) -> None:
        self.first_lines.add(content[:15])

    def settimeout(self, _: float | None) -> None:
        """It waits for nothing."""


@cache
def _server() -> ProfileServer:
    """Of this file, with streams that end at once."""
    server = ProfileServer(Shelf([Path(__file__)], Path.read_bytes), _TOKEN)
    server.is_closing = True
    return server


def send(path: Path, *, as_page: bool) -> None:
    """Requests to the server of `bragg web`."""
    server, connection = _server(), _Connection(path.read_bytes())
    server.RequestHandlerClass(cast(socket.socket, connection), ("127.0.0.1", 1), server)
    server.connections.leave(cast(socket.socket, connection))
    if b"HTTP/1.1 200 OK" not in connection.first_lines:
        raise BadFile("the server refuses", hint="as a page" if as_page else "as a request")


def mcp_calls() -> bytes:
    """Calls of tools, and what a program prints that `record` and `check` have run."""
    file = "run.bragg"
    printed = {"schema": JSON_SCHEMA, "profiles": [{"file": file, "complete": True}], "findings": [], "exit_code": 0}
    calls: dict[str, dict[str, Any]] = {
        "view": {"file": file, "metric": "gpu_time", "include": "a", "by_name": True},
        "analyze": {"file": file, "least_gain": "1%"},
        "source": {"file": file, "kernel": "k", "ir": "ptx"},
        "record": {"command": ["train.py"], "output": file, "options": ["--data", "trace"], "timeout_s": 5.0},
        "check": {"command": ["kernels.py"], "timeout_s": 5.0},
    }
    return json.dumps({"calls": [[tool, given] for tool, given in calls.items()], "printed": printed}).encode()


@cache
def _profile() -> Path:
    folder = tempfile.mkdtemp()
    path = Path(folder, "run.bragg")
    formats.finish(small_capture().write(Path(folder, "run.part")), path)
    return path


def ask_mcp(path: Path, *, as_page: bool) -> None:
    """Calls of the tools of `bragg mcp`, whose commands run in this process; no program is started."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from pydantic_core import PydanticSerializationError

    from bragg import mcp_server

    match json.loads(path.read_bytes()):
        case {"calls": list(found), "printed": printed}:
            calls = [call for call in found[:_N_CALLS] if isinstance(call, list) and len(call) == 2]
        case _:
            raise BadFile("nothing is asked", hint="Nothing of bragg sees it")

    async def run(words: Sequence[str], _: float) -> Any:
        if words[0] in ("run", "check"):
            return mcp_server._Done(f"text\n{json.dumps(printed)}\n", "", 0)
        output, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([str(_profile()) if word == "run.bragg" else word for word in words])
        return mcp_server._Done(output.getvalue(), errors.getvalue(), code)

    server = mcp_server.server()
    try:
        with patch.object(mcp_server, "_run", run):
            for tool, arguments in calls:
                if isinstance(tool, str) and isinstance(arguments, dict):  # the protocol knows no others
                    asyncio.run(server.call_tool(tool, arguments))
    except UnexpectedToolError as error:
        if isinstance(error.__cause__, PydanticSerializationError):  # the program printed what has too many levels
            raise BadFile(str(error), hint="It is what the program printed") from None
        raise error.__cause__ or error from None
    except ToolError as error:
        raise BadFile(" ".join(str(error).split()), hint="as a page" if as_page else "as a call") from None
