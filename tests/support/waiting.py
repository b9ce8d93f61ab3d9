"""What is expected of a page is waited for: how soon a page has followed a click depends on the machine."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

# Much longer than anything takes on a slow and busy machine; only what fails takes so long.
PATIENCE_MS = 60_000
_PAUSE_S = 0.02

Value = TypeVar("Value")


def expect(subject: Any) -> Any:
    """Playwright's assertions about a page or a locator."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=PATIENCE_MS)
    return assertions(subject)


def expect_value(read: Callable[[], Value], wanted: Value | Callable[[Value], bool]) -> None:
    """Wait until what is read is what is wanted; for what Playwright has no assertion, as the pixels of a canvas.

    Args:
        read: Asks the page, which also lets messages of the browser arrive.
        wanted: A value, or what tells whether a value will do.
    """

    def holds(value: Value) -> bool:
        return bool(wanted(value)) if callable(wanted) else value == wanted

    end_s = time.monotonic() + PATIENCE_MS / 1e3
    while not holds(value := read()) and time.monotonic() < end_s:
        time.sleep(_PAUSE_S)
    assert holds(value), f"{value!r}, where {'something else' if callable(wanted) else repr(wanted)} is expected"


def address(page: Any) -> str:
    """What the address says behind `#`, decoded."""
    return str(page.evaluate("decodeURIComponent(location.hash)"))


def expect_address(page: Any, *parts: str, lacks: str | None = None) -> None:
    """Wait until the address says all of this behind `#`, and does not say what it is to lack."""
    expect_value(
        lambda: address(page), lambda text: all(part in text for part in parts) and not (lacks and lacks in text)
    )


def beginning(text: str) -> re.Pattern[str]:
    """For texts that begin so."""
    return re.compile(f"^{re.escape(text)}")
