"""A browser for pages: nothing but the page may be asked for, and nothing may go wrong in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bragg.model import Profile
from bragg.views.web.page import page as page_of
from bragg.views.web.report_payload import report_payload
from tests.support.waiting import PATIENCE_MS

# Those of a file, and what a page makes for itself.
_INNER_SCHEMES = ("file:", "data:", "blob:")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.consumer)


# Not longer than a module: tests elsewhere start Playwright too, and it is there once.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A running browser; skips where there is none, and fails in continuous integration."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("chromium is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=PATIENCE_MS)
        yield browser
        browser.close()


class Pages:
    """Opens pages and collects what goes wrong in them."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.problems: list[str] = []
        self._browser, self._folder = browser, folder
        self._contexts: list[Any] = []

    def open(
        self, shown: Profile | Path, place: str = "", *, width: int = 1280, height: int = 800, theme: str = "light"
    ) -> Any:
        """The page of a report, from its file, once its view is there.

        Args:
            shown: A profile, or the file of a page.
            place: What the address says behind `#`.
            width: Of the window, px; likewise `height`.
            theme: What the system prefers: `light` or `dark`.
        """
        file = shown if isinstance(shown, Path) else self.write(shown)
        page = self.blank(_INNER_SCHEMES, width=width, height=height, theme=theme)
        page.goto(f"file://{file.resolve()}{f'#{place}' if place else ''}")
        page.locator("main.view").wait_for()
        return page

    def blank(self, allowed: tuple[str, ...], *, width: int = 1280, height: int = 800, theme: str = "light") -> Any:
        """An empty page that may ask for addresses that begin so."""
        context = self._browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()

        def guard(route: Any) -> None:
            if route.request.url.startswith(allowed):
                route.continue_()
            else:
                self.problems.append(f"request to {route.request.url[:200]}")
                route.abort()

        page.route("**/*", guard)
        page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        page.on("console", self._note)
        return page

    def write(self, *profiles: Profile, name: str = "report.html") -> Path:
        """The file of a page with these profiles."""
        file = self._folder / name
        payloads = [report_payload(profile, f"profile {row}") for row, profile in enumerate(profiles)]
        file.write_text(page_of(payloads, "test"), encoding="utf-8")
        return file

    def close(self) -> None:
        """End all pages; nothing may have gone wrong in them."""
        for context in self._contexts:
            context.close()
        assert self.problems == []

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")


@pytest.fixture
def pages(chromium: Any, tmp_path: Path) -> Iterator[Pages]:
    """Opens pages; the test fails when one of them asks for anything else, or anything goes wrong in it."""
    opened = Pages(chromium, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def pixel() -> Callable[[Any, str, int, int], str]:
    """The colour of a canvas at a point, `rgb(r, g, b)`; CSS pixels from its upper left corner."""

    def colour(page: Any, selector: str, x: int, y: int) -> str:
        found: str = page.locator(selector).evaluate(
            """(canvas, [x, y]) => {
                const scale = canvas.width / canvas.clientWidth;
                const copy = new OffscreenCanvas(1, 1).getContext("2d");
                copy.drawImage(canvas, -Math.floor(x * scale), -Math.floor(y * scale));
                const data = copy.getImageData(0, 0, 1, 1).data;
                return `rgb(${data[0]}, ${data[1]}, ${data[2]})`;
            }""",
            [x, y],
        )
        return found

    return colour
