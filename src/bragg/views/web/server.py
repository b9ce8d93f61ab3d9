"""A server of profiles for browsers on this machine.

It listens on the loopback interface alone. Its address has a random token, so that other users and pages cannot guess
it, and requests must name this machine as their host, so that no page of another name can reach it (DNS rebinding).
"""

from __future__ import annotations

import hmac
import html
import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from bragg.errors import BraggError
from bragg.views.text.style import printable
from bragg.views.web.connections import Connections
from bragg.views.web.page import asset
from bragg.views.web.shelf import Shelf

_HOST = re.compile(r"(127\.0\.0\.1|localhost):\d+")
_ASSETS = {"app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="bragg-server" content="profiles">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="app.css">
<title>{title}</title>
</head>
<body>
<div id="app"><p class="loading">Reading the profile…</p></div>
<noscript>This page needs JavaScript.</noscript>
<script src="app.js"></script>
</body>
</html>
"""
# Files are looked at this often; the recorder flushes every second.
_LOOK_S = 0.5
# A browser that is gone is noticed by writing to it.
_HEARTBEAT_S = 10.0
# Each has a thread. Tabs of a browser have up to seven: a stream, and six at a time for all else.
_MAX_CONNECTIONS = 64


class ProfileServer(ThreadingHTTPServer):
    """Serves a shelf of profiles below `/TOKEN/`.

    Args:
        shelf: What is served.
        token: What an address must begin with.
        port: 0 chooses a free one.
        title: Of the page.

    Raises:
        OSError: The port is taken.
    """

    daemon_threads = True
    # Other servers may not take the port over while this one runs.
    allow_reuse_port = False
    # Connections that the system holds while they are taken one after another; with the default of 5 a page with a few
    # assets and streams already waits a second for those that it drops.
    request_queue_size = 128

    def __init__(self, shelf: Shelf, token: str, *, port: int = 0, title: str = "bragg") -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.shelf = shelf
        self.token = token
        self.title = title
        self.is_closing = False
        self.connections = Connections(_MAX_CONNECTIONS)

    @property
    def address(self) -> str:
        """What to open in a browser on this machine."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there is room for it."""
        if not self.connections.enter(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # No thread could be started: socketserver closes the connection.
            self.connections.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.leave(request)

    def shutdown(self) -> None:
        """Stop serving; streams of changes end at their next look."""
        self.is_closing = True
        super().shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is not an error worth a traceback."""


class _Handler(BaseHTTPRequestHandler):
    server: ProfileServer
    protocol_version = "HTTP/1.1"
    server_version = "bragg"
    sys_version = ""
    # A request that is not sent completely must not hold its thread for ever.
    timeout = 30

    def do_GET(self) -> None:
        """Answer a request."""
        token, _, place = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send_text(HTTPStatus.FORBIDDEN, "Wrong address: copy all of it from the terminal.")
        elif not _HOST.fullmatch(self.headers.get("Host") or ""):
            self._send_text(HTTPStatus.FORBIDDEN, "This server answers on this machine only.")
        else:
            self.server.connections.trust(self.connection)
            self._answer(place)

    def _answer(self, place: str) -> None:
        if place in _ASSETS:
            self._send(HTTPStatus.OK, _ASSETS[place], asset(place).encode())
        elif place.startswith("profile/"):
            self._send_profile(place.removeprefix("profile/"))
        else:
            answer = self._PLACES.get(place)
            if answer is None:
                self._send_text(HTTPStatus.NOT_FOUND, "There is nothing of this name.")
            else:
                answer(self)

    def _send_page(self) -> None:
        page = _PAGE.format(title=html.escape(printable(self.server.title)))
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.encode())

    def _send_list(self) -> None:
        self._send(HTTPStatus.OK, "application/json", self._list().encode())

    def _list(self) -> str:
        return json.dumps([asdict(entry) for entry in self.server.shelf.entries()])

    def _send_profile(self, number: str) -> None:
        try:
            packed = self.server.shelf.packed(int(number) if number.isdecimal() and len(number) < 9 else -1)
        except KeyError:
            self._send_text(HTTPStatus.NOT_FOUND, "There is no such profile.")
        except BraggError as error:
            self._send_text(HTTPStatus.SERVICE_UNAVAILABLE, error.message)
        else:
            self._send(HTTPStatus.OK, "application/octet-stream", packed)

    def _send_changes(self) -> None:
        """A stream of server-sent events: the list of profiles, now and after each change."""
        self.close_connection = True
        self._start(HTTPStatus.OK, "text/event-stream", None)
        sent, sent_s = "", time.monotonic()
        while not self.server.is_closing:
            found = self._list()
            if found != sent or time.monotonic() - sent_s > _HEARTBEAT_S:
                self.wfile.write(f"data: {found}\n\n".encode())
                sent, sent_s = found, time.monotonic()
            time.sleep(_LOOK_S)

    _PLACES: ClassVar[dict[str, Callable[[_Handler], None]]] = {
        "": _send_page,
        "profiles": _send_list,
        "changes": _send_changes,
    }

    def _send_text(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode())

    def _send(self, status: HTTPStatus, content_type: str, content: bytes) -> None:
        self._start(status, content_type, len(content))
        self.wfile.write(content)

    def _start(self, status: HTTPStatus, content_type: str, n_bytes: int | None) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close") if n_bytes is None else self.send_header("Content-Length", str(n_bytes))
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Requests are not told: their addresses hold the token."""
