from __future__ import annotations

import base64
import gzip
import re
import zlib
from pathlib import Path

import bragg
from bragg.views.web.page import asset, page

SCRIPT_LIMIT_BYTES = 400_000
WHEEL_LIMIT_BYTES = 2_000_000
EXAMPLES = Path(__file__).parents[4] / "examples"


def test_payloads_are_in_the_page_in_order() -> None:
    found = re.findall(r'class="profile">([^<]*)<', page([b"one", b"two"], "t"))
    assert [base64.b64decode(text) for text in found] == [b"one", b"two"]


def test_title_is_text() -> None:
    assert "<title>&lt;b&gt; &amp; &quot;</title>" in page([], '<b> & "')


def test_page_names_no_other_place() -> None:
    text = page([b""], "t").replace(asset("app.js"), "")
    assert re.findall(r"""(?:src|href)=["'](?!data:,")|url\((?!#)""", text) == []
    assert "default-src &#x27;none&#x27;" in text


def test_script_and_style_do_not_end_their_elements() -> None:
    assert "</script" not in asset("app.js").lower()
    assert "</style" not in asset("app.css").lower()
    assert "@import" not in asset("app.css")


def test_script_is_small() -> None:
    assert len(gzip.compress(asset("app.js").encode())) <= SCRIPT_LIMIT_BYTES


def test_wheel_without_its_native_part_is_small() -> None:
    """What it holds, compressed as there: the examples, which an editable installation has elsewhere, but no README."""
    package = Path(bragg.__file__).parent
    folders = [package] if (package / "data/examples").exists() else [package, EXAMPLES]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    files = [file for file in files if file.suffix not in (".so", ".pyc") and file.name != "README.md"]
    assert sum(len(zlib.compress(file.read_bytes())) for file in files) <= WHEEL_LIMIT_BYTES
