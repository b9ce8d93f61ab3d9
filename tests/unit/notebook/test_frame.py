from __future__ import annotations

import html
import re

from tests.support.profiles import profile_from_text


def test_profile_shows_itself_as_a_frame_that_holds_the_whole_page() -> None:
    text = profile_from_text("root\n  matmul 12us")._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" [^>]*></iframe>', text)
    assert frame is not None
    page = html.unescape(frame[1])
    assert page.startswith("<!doctype html>")
    assert '<base href="about:srcdoc">' in page
    assert "default-src 'none'" in html.unescape(page)
