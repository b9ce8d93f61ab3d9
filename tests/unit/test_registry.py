from __future__ import annotations

from pathlib import Path

import pytest

from bragg.errors import UsageError
from bragg.formats import Format
from bragg.registry import FORMATS, RULES, Registry


def test_every_format_can_be_loaded() -> None:
    assert all(isinstance(format_, Format) for format_ in FORMATS.values())


def test_every_format_is_read_or_written() -> None:
    assert all(format_.read or format_.write for format_ in FORMATS.values())


def test_an_unknown_name_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown format 'pdf'") as error:
        FORMATS["pdf"]
    assert error.value.hint.startswith("Choose one of: bragg, capture, hatchet")


def test_the_nearest_known_name_is_told() -> None:
    with pytest.raises(UsageError) as error:
        RULES["recompliation"]
    assert error.value.hint == "Did you mean recompilation?"


def test_a_plug_in_is_imported_at_first_use() -> None:
    registry = Registry("thing", {"join": "os.path:join", "broken": "no_such_module:thing"})
    assert registry["join"]("a", "b") == "a/b"
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry["broken"]


def test_rows_that_begin_with_a_dot_are_within_a_package() -> None:
    registry = Registry("thing", {"join": ".path:join", "sep": "os.path:sep"}, within="os")
    assert (registry["join"]("a", "b"), registry["sep"]) == ("a/b", "/")


def test_packages_add_rows_by_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = tmp_path / "things-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: things\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[bragg.things]\njoin = os:sep\nsplit = os.path:split\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("thing", {"join": "os.path:join"}, group="bragg.things")
    assert list(registry) == ["join", "split"]
    assert registry["join"]("a", "b") == "a/b"  # an own row cannot be replaced
    assert registry["split"]("a/b") == ("a", "b")
    assert [name for name in registry if registry.is_plug_in(name)] == ["split"]
