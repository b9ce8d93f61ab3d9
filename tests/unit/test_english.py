"""The worst phrases of CONTRIBUTING's list do not come back: in pages, messages, docstrings and comments."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.once

PAGES = [*(ROOT / name for name in ("README.md", "mkdocs.yml")), *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = sorted((ROOT / "src" / "bragg").rglob("*.py"))
# Of the core and the viewer.
OTHER_SOURCES = [
    path
    for tree, kinds in (("native", (".cpp", ".h")), ("web/src", (".ts",)))
    for path in sorted((ROOT / tree).rglob("*"))
    if path.suffix in kinds
]

EVERYWHERE = {
    r"which (?:this|the) \w+ has not\b": "and this profile has none",
    r"\b(?:is|are) (?:pleasant|wished for)\b": "name the thing",
    r"\b(?:are|were) no times\b": "has no times",
    r"\bLook instead of\b": "Prefer …?",
    r"\b(?:whereof|thereof|wherefore|heretofore)\b": "of which, because",
    r"\bone's own\b": "your own",
    r"\b[Ww]alk about\b": "browse",
}
FOR_READERS = {
    **EVERYWHERE,
    r"(?<!here )\bis no (?:profile|capture|time|number|list|object|regular|table|text|metric)\b": "is not a",
    r"\blikewise\b|\bLikewise\b": "also; the same for …",
    r"\bas ever\b": "as usual",
    r"\bbut for\b": "except",
    r"\b(?:is|are) told on\b": "is printed on",
    r"\bwhy not more\b": "leave it out",
}


def found(text: str, phrases: dict[str, str]) -> list[str]:
    """Each phrase in a text that is not to be used, with what to write."""
    lines = enumerate(text.splitlines(), 1)
    return [
        f"{number}: {match[0]!r}: write {better!r}"
        for number, line in lines
        for phrase, better in phrases.items()
        for match in re.finditer(phrase, line)
    ]


def messages(source: str) -> str:
    """The strings of a program that are no docstrings: messages and help texts among them, each on its line."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    lines = [""] * (source.count("\n") + 2)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            lines[node.lineno] += " " + " ".join(node.value.split())
    return "\n".join(lines[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_in_plain_english(page: Path) -> None:
    prose = re.sub(
        r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", "", code[0]), page.read_text(), flags=re.DOTALL
    )
    assert found(prose, FOR_READERS) == []


def test_messages_and_help_texts_are_in_plain_english() -> None:
    wrong = {str(path.relative_to(ROOT)): found(messages(path.read_text()), FOR_READERS) for path in SOURCES}
    assert {path: phrases for path, phrases in wrong.items() if phrases} == {}


def test_docstrings_and_comments_have_none_of_the_worst() -> None:
    assert len(OTHER_SOURCES) > 400
    sources = (*SOURCES, *OTHER_SOURCES)
    wrong = {str(path.relative_to(ROOT)): found(path.read_text(), EVERYWHERE) for path in sources}
    assert {path: phrases for path, phrases in wrong.items() if phrases} == {}


def test_phrases_are_found_with_their_line() -> None:
    assert found("fine\nutil needs flops, which this profile has not", EVERYWHERE) == [
        "2: 'which this profile has not': write 'and this profile has none'"
    ]
    assert found(messages('"""It is likewise."""\nx = "it is no profile"\n'), FOR_READERS) == [
        "2: 'is no profile': write 'is not a'"
    ]
