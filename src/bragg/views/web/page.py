"""The report: one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import html
from collections.abc import Sequence
from importlib import resources

from bragg.views.text.style import printable

# Nothing but what is in the page may run, be drawn or be asked for.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">{base}
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="bragg">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"><p class="loading">Reading the profile…</p></div>
<noscript>This report needs JavaScript.</noscript>
{payloads}
<script>{script}</script>
</body>
</html>
"""


def page(payloads: Sequence[bytes], title: str, *, base: str = "") -> str:
    """A page that shows profiles, from a file as well as from a server.

    Args:
        payloads: What `payload.pack` made of each.
        title: Of the page.
        base: What its relative addresses begin with, for a page within another; empty: its own address.
    """
    return _PAGE.format(
        base=f'\n<base href="{html.escape(base)}">' if base else "",
        policy=html.escape(_POLICY),
        title=html.escape(printable(title)),
        style=asset("app.css"),
        payloads="\n".join(_payload(packed) for packed in payloads),
        script=asset("app.js"),
    )


def asset(name: str) -> str:
    """The text of a built file of the viewer; it never holds what would end its element."""
    compressed = (resources.files("bragg.views.web") / "static" / f"{name}.gz").read_bytes()
    return gzip.decompress(compressed).decode()


def _payload(packed: bytes) -> str:
    return f'<script type="application/octet-stream" class="profile">{base64.b64encode(packed).decode()}</script>'
