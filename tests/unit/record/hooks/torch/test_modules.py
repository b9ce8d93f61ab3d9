"""The wrapped call on a stand-in for PyTorch's modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.core import core
from bragg.record.hooks.torch.modules import SCOPES, ModuleScopes, record_modules


class Module:
    def __init__(self, **children: Module) -> None:
        self.children = children
        self._parameters = {"weight": 1}

    def parameters(self) -> Iterator[int]:
        return iter(self._parameters.values())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def __call__(self, *arguments: Any, fail: bool = False) -> Any:
        if fail:
            raise ValueError(core.context_depth())
        return (core.context_depth(), *arguments)


@pytest.fixture
def torch() -> Any:
    module = type("Module", (Module,), {"__call__": Module.__call__})
    return SimpleNamespace(nn=SimpleNamespace(Module=module), compiler=SimpleNamespace(is_compiling=lambda: False))


def test_modules_are_named_by_their_path_in_the_model() -> None:
    scopes = ModuleScopes()
    model = Module(encoder=Module(linear=Module()), head=Module())
    scopes.name_modules(model)
    linear = model.children["encoder"].children["linear"]
    assert scopes.known[id(linear)][1].name == "Module.encoder.linear"
    assert scopes.known[id(model)][1].name == "Module"


def test_a_module_gets_its_path_when_a_model_that_it_is_in_is_called_later() -> None:
    scopes = ModuleScopes()
    layer, other = Module(linear=Module()), Module()
    names = [scopes.name_modules(module)[1].name for module in (layer, other)]
    scopes.name_modules(Module(wrapped=layer))
    names.append(scopes.known[id(layer)][1].name)
    model = Module(layer=layer, head=Module())
    scopes.name_modules(model)
    assert [*names, scopes.known[id(layer)][1].name] == ["Module", "Module#2", "Module", "Module#3.layer"]
    assert scopes.known[id(layer.children["linear"])][1].name == "Module#3.layer.linear"
    assert scopes.known[id(other)][1].name == "Module#2"
    late = model.children["late"] = Module()
    assert scopes.name_modules(late)[1].name == "Module#3.late"


def test_a_module_that_is_added_to_a_model_gets_its_path() -> None:
    scopes = ModuleScopes()
    model = Module(body=Module())
    scopes.name_modules(model)
    model.children["late"] = late = Module(linear=Module())
    assert scopes.name_modules(late)[1].name == "Module.late"
    assert scopes.known[id(late.children["linear"])][1].name == "Module.late.linear"


def test_a_module_that_dies_is_forgotten() -> None:
    scopes = ModuleScopes()
    model: Module | None = Module(head=Module())
    assert model is not None
    scopes.name_modules(model)
    del model
    gc.collect()
    assert scopes.known == {}


def test_a_call_is_in_its_scope_and_the_scope_ends_when_it_raises(torch: Any) -> None:
    undo = record_modules(torch)
    model = torch.nn.Module()
    depth = core.context_depth()
    assert model(5) == (depth + core.recording(), 5)
    with pytest.raises(ValueError, match=r"\d"):
        model(fail=True)
    assert core.context_depth() == depth
    undo()
    assert torch.nn.Module.__call__ is Module.__call__


def test_calls_that_are_only_traced_are_left_alone(torch: Any) -> None:
    torch.compiler.is_compiling = lambda: True
    record_modules(torch)
    assert torch.nn.Module()(5) == (core.context_depth(), 5)


def test_a_model_that_cannot_tell_its_modules_is_named_by_its_class(
    torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    record_modules(torch)
    model = torch.nn.Module()
    model.named_modules = lambda: 1 / 0
    depth = core.context_depth() + core.recording()
    assert [model(5), model(6), torch.nn.Module()(7)] == [(depth, 5), (depth, 6), (depth, 7)]
    assert capsys.readouterr().err.count("name_modules failed: division by zero") == 1
    assert SCOPES.known[id(model)][1].name == "Module"
