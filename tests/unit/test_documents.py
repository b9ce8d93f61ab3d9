from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.cli.verbs import VERBS
from bragg.model import Profile, SliceTable, TrackKind, TrackTable
from tests.support.profiles import profile_from_text
from tools import site_reference

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "benchmarks/README.md")),
    *(path for tree in ("docs", "native", "src") for path in sorted((ROOT / tree).rglob("*.md"))),
    ROOT / "web/README.md",
]
READ_BY = ["src/bragg/**/*.py", "native/**/*.cpp", "benchmarks/*.py", "CMakeLists.txt", "Makefile"]

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def found(pattern: str, path: Path) -> set[str]:
    """What the pattern's group matches in a file, line by line."""
    return set(re.findall(pattern, path.read_text(), re.MULTILINE))


@every_document
def test_verbs_exist(document: Path) -> None:
    assert found(r"(?:^|`|\$ )(?:python -m )?bragg ([a-z]+)", document) <= set(VERBS)


def test_readme_lists_every_verb() -> None:
    rows = re.findall(r"^\|.*", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(re.findall(r"`bragg ([a-z]+)", "\n".join(rows))) == set(VERBS)


def test_readme_leads_to_every_tutorial() -> None:
    found_pages = [*ROOT.glob("docs/tutorials/*.md"), *ROOT.glob("docs/coming-from/*.md")]
    pages = {str(page.relative_to(ROOT)) for page in found_pages}
    assert pages - found(r"\]\((docs/[a-z/-]+\.md)", ROOT / "README.md") == set()


@every_document
def test_make_targets_exist(document: Path) -> None:
    assert found(r"(?:^|`)make ([a-z0-9-]+)", document) <= found(r"^([a-z0-9-]+):", ROOT / "Makefile")


@every_document
def test_variables_are_read_by_something(document: Path) -> None:
    sources = [path for pattern in READ_BY for path in ROOT.glob(pattern)]
    read = set().union(*(found(r"(BRAGG_[A-Z_]+)", path) for path in sources))
    assert found(r"\b(BRAGG_[A-Z_]+)", document) <= read


@every_document
def test_links_lead_to_files(document: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = {(document.parent / target).resolve() for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose)}
    made = {ROOT / "docs" / page for page in site_reference.PAGES}
    assert {target for target in targets - made if not target.exists()} == set()


def test_documented_reader_of_slices_reads_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_ns = np.array([1_700_000_000_000_000_000, 1_700_000_000_000_000_500, 1_700_000_000_000_000_100])
    formats.export(profile_with_slices(start_ns, track=np.array([0, 0, 1])), "bragg", tmp_path / "run.bragg")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "reference" / "file-format.md").read_text()
    (example,) = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert np.array_equal(names["start_ns"], start_ns)


def profile_with_slices(start_ns: np.ndarray, track: np.ndarray) -> Profile:
    """A profile with slices at these times on two GPU streams."""
    tracks = TrackTable(
        kind=np.full(2, TrackKind.GPU_STREAM, np.uint8),
        process=np.zeros(2, np.int32),
        device=np.zeros(2, np.int32),
        context=np.zeros(2, np.int64),
        stream=np.arange(2),
        name=["", ""],
    )
    zeros = np.zeros(len(start_ns), np.int64)
    slices = SliceTable(start_ns, zeros, zeros.astype(np.int32), track.astype(np.int32), zeros)
    return replace(profile_from_text("root"), tracks=tracks, slices=slices)
