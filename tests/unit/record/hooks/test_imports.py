from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bragg.record.hooks.imports import when_imported


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `framework` on the path, forgotten afterwards."""
    directory = tmp_path / "framework"
    directory.mkdir()
    (directory / "__init__.py").write_text("loader = __spec__.loader\nready = True\n")
    (directory / "engine.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield directory
    for name in ("framework", "framework.engine"):
        sys.modules.pop(name, None)
    assert sys.meta_path == finders


def test_callback_runs_once_when_the_import_has_succeeded(package: Path) -> None:
    seen: list[bool] = []
    when_imported("framework", lambda module: seen.append(module.ready))
    assert seen == []
    importlib.import_module("framework")
    assert seen == [True]


def test_callback_runs_at_once_when_the_module_is_there(package: Path) -> None:
    importlib.import_module("framework")
    seen: list[ModuleType] = []
    when_imported("framework", seen.append)
    assert seen == [sys.modules["framework"]]


def test_module_sees_its_own_loader(package: Path) -> None:
    when_imported("framework", lambda module: None)
    module = importlib.import_module("framework")
    assert module.__spec__ is not None
    assert module.loader is module.__loader__ is module.__spec__.loader
    assert type(module.loader).__name__ == "SourceFileLoader"


def test_looking_a_module_up_does_not_import_it(package: Path) -> None:
    seen: list[ModuleType] = []
    watch = when_imported("framework", seen.append)
    spec = importlib.util.find_spec("framework")
    assert spec is not None
    assert spec.loader is not None
    assert spec.loader.get_source("framework").startswith("loader")  # type: ignore[attr-defined]
    assert seen == []
    watch.remove()


def test_two_watches_of_one_module_both_run(package: Path) -> None:
    seen: list[int] = []
    when_imported("framework", lambda module: seen.append(1))
    when_imported("framework", lambda module: seen.append(2))
    importlib.import_module("framework")
    assert sorted(seen) == [1, 2]


def test_submodule_can_be_awaited(package: Path) -> None:
    seen: list[str] = []
    when_imported("framework.engine", lambda module: seen.append(module.__name__))
    importlib.import_module("framework")
    assert seen == []
    importlib.import_module("framework.engine")
    assert seen == ["framework.engine"]


def test_failed_import_is_awaited_again(package: Path) -> None:
    (package / "__init__.py").write_text("raise ImportError('first')")
    seen: list[ModuleType] = []
    when_imported("framework", seen.append)
    with pytest.raises(ImportError, match="first"):
        importlib.import_module("framework")
    (package / "__init__.py").write_text("second = True  # longer than before")
    importlib.invalidate_caches()
    importlib.import_module("framework")
    assert [module.second for module in seen] == [True]


def test_missing_module_stays_missing(package: Path) -> None:
    watch = when_imported("framework.missing", lambda module: None)
    with pytest.raises(ModuleNotFoundError, match=r"framework\.missing"):
        importlib.import_module("framework.missing")
    watch.remove()


def test_removed_watch_neither_waits_nor_keeps_its_effect(package: Path) -> None:
    seen: list[str] = []
    when_imported("framework", lambda module: seen.append("early")).remove()
    watch = when_imported("framework", lambda module: lambda: seen.append("undone"))
    importlib.import_module("framework")
    watch.remove()
    watch.remove()
    assert seen == ["undone"]


def test_failure_of_a_callback_is_one_line_on_stderr(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def record_framework(module: ModuleType) -> None:
        raise AttributeError("no such\nname")

    when_imported("framework", record_framework)
    assert importlib.import_module("framework").ready
    assert capsys.readouterr().err.endswith(": record_framework failed: no such name\n")
