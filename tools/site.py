"""Hooks of mkdocs: pages that are made from the code, and links to files of the repository that are not pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from site_reference import PAGES, expanded

__all__ = ["on_files", "on_page_markdown"]

_ROOT = Path(__file__).parents[1]
_LINK_OUT = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made from the code."""
    from mkdocs.structure.files import File

    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Fill in what the code says, and name files of the repository instead of linking to them."""
    folder = (Path(config["docs_dir"]) / page.file.src_uri).parent

    def named(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(config["docs_dir"]) or not target.exists():
            return link[0]  # a page, or a broken link, which mkdocs reports
        path = f"`{target.relative_to(_ROOT)}`"
        return path if link[1].strip("`") in (target.name, path.strip("`")) else f"{link[1]} ({path})"

    return _LINK_OUT.sub(named, expanded(markdown))
