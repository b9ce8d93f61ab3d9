"""A headless browser on a local server, for programs that open exports only in a browser."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE_MS


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a server of a folder's files."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def browser_page(address: str) -> Iterator[Any]:
    """A page of Chromium that reaches nothing but `address`; skips the test where there is no browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    # Software rendering: speedscope draws with WebGL.
    arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=arguments, timeout=PATIENCE_MS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.route(lambda url: not url.startswith(address), lambda route: route.abort())
        yield page
        browser.close()
