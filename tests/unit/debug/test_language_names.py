"""Every public name of the installed Triton is executed, or listed with the reason why it is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

triton = pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("debug_language", ROOT / "tools" / "debug_language.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_name_is_executed_or_listed(tool: ModuleType) -> None:
    refused = {name for names in tool.inventory().values() for name, lack in names.items() if lack}
    assert refused <= set(tool.LISTED), "new names: execute them, or list them in tools/debug_language.py"


def test_names_are_looked_for_where_there_are_some(tool: ModuleType) -> None:
    counts = {module: len(names) for module, names in tool.inventory().items()}
    assert counts["triton.language"] > 120
    assert counts["triton.language.extra.libdevice"] > 190
    assert counts["triton.language.standard"] > 20


def test_name_that_does_not_exist_in_the_engine_is_found(tool: ModuleType) -> None:
    module = ModuleType("triton.language.invented")
    exec("def invented(): pass", vars(module))
    module.invented.__triton_builtin__ = True
    module.invented.__module__ = "triton.language.invented"
    assert "invented is not supported" in tool.missing(module, "invented")


def test_document_is_that_of_the_installed_triton(tool: ModuleType) -> None:
    document = (ROOT / "docs" / "reference" / "debug-language.md").read_text()
    if f"Triton {triton.__version__};" not in document:
        pytest.skip("the document is of another Triton")
    assert document.rstrip("\n") == tool.table().rstrip("\n"), "run: python tools/debug_language.py"
