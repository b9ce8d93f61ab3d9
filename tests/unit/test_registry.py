from __future__ import annotations

import pytest

from bragg.errors import UsageError
from bragg.formats import Format
from bragg.registry import FORMATS, Registry


def test_every_format_can_be_loaded() -> None:
    assert all(isinstance(format_, Format) for format_ in FORMATS.values())


def test_every_format_is_read_or_written() -> None:
    assert all(format_.read or format_.write for format_ in FORMATS.values())


def test_an_unknown_name_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown format 'pdf'") as error:
        FORMATS["pdf"]
    assert error.value.hint.startswith("Choose one of: bragg, capture, hatchet")


def test_a_plug_in_is_imported_at_first_use() -> None:
    registry = Registry("thing", {"join": "os.path:join", "broken": "no_such_module:thing"})
    assert registry["join"]("a", "b") == "a/b"
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry["broken"]
