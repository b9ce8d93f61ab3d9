"""PyTorch: calls of modules as scopes that are named by the path of the module in its model.

`torch.nn.Module.__call__` is wrapped rather than hooked: PyTorch warns of global hooks when it compiles, and calls
every module on a slower path.
"""

from __future__ import annotations

import weakref
from itertools import chain, count

from bragg.core import core
from bragg.record.hooks.methods import wrap
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.methods import Undo


# With more, models are not told apart: a program that makes thousands is not to wait for names.
_MOST_MODELS = 64


def record_modules(torch: ModuleType) -> Undo:
    """Record the calls of modules, except those that a compiler only traces.

    Returns:
        What undoes it.
    """
    is_compiling = torch.compiler.is_compiling
    # By address: a key that is a weak reference would cost more than the scope.
    known = SCOPES.known
    name_modules = guarded(SCOPES.name_modules)

    def recorded(call: Callable[..., Any]) -> Callable[..., Any]:
        def call_recorded(self: Any, *arguments: Any, **options: Any) -> Any:
            if is_compiling():
                return call(self, *arguments, **options)
            entry = known.get(id(self))
            if entry is None:
                entry = name_modules(self) or SCOPES.name_by_class(self)
            with entry[1]:
                return call(self, *arguments, **options)

        return call_recorded

    return wrap(torch.nn.Module, "__call__", recorded)


class ModuleScopes:
    """The scope of each module.

    Attributes:
        known: By the address of a module, what forgets it when it dies, its scope, and the address of its model.
        models: The names of models that have parameters, by their addresses.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Any], core.Scope, int]] = {}
        self.models: dict[int, str] = {}

    def name_modules(self, module: Any) -> tuple[weakref.ref[Any], core.Scope, int]:
        """The entry of a module that is called for the first time: it and all modules below it get their names.

        A module that is in none that was called has a name of its own, as a model has, until one is called that it is
        in: modules are often called alone once, while their model is made. What has one child alone is no such model
        but a wrapper, as of `torch.compile`.
        """
        model = self._model_of(module)
        named = list(model.named_modules())
        name, address = self._name_of(model), id(model)
        is_wrapper = sum("." not in path for path, _ in named) == 2  # itself, whose path is empty, and a child
        below = set() if is_wrapper else {id(child) for path, child in named if path}
        for path, child in named:
            entry = self.known.get(id(child))
            if entry is None or entry[2] in below:
                self._add(child, f"{name}.{path}" if path else name, address)
        for inner in below:
            self.models.pop(inner, None)
        return self.known[id(module)]

    def name_by_class(self, module: Any) -> tuple[weakref.ref[Any], core.Scope, int]:
        """The entry of a module that cannot tell what is below it."""
        self._add(module, type(module).__name__, id(module))
        return self.known[id(module)]

    def _model_of(self, module: Any) -> Any:
        """The model that a module was added to after that was called; the module itself if there is none."""
        # What has no parameters, such as a loss that is made for one call, is not worth the search.
        if module._parameters and len(self.models) <= _MOST_MODELS:
            for entry in map(self.known.get, list(self.models)):
                model = entry[0]() if entry is not None else None
                if model is not None and any(child is module for _, child in model.named_modules()):
                    return model
        return module

    def _name_of(self, model: Any) -> str:
        """The class, and a number where another model has that name."""
        known, name = self.known.get(id(model)), type(model).__name__
        if known is not None:
            return known[1].name
        if len(self.models) > _MOST_MODELS or not any(True for _ in model.parameters()):
            return name
        taken = set(self.models.values())
        numbered = (f"{name}#{number}" for number in count(2))
        self.models[id(model)] = name = next(free for free in chain([name], numbered) if free not in taken)
        return name

    def of_parameters(self) -> dict[int, str]:
        """The names of the modules, by the addresses of their own parameters."""
        alive = [(module(), scope.name) for module, scope, _ in list(self.known.values())]
        return {
            id(parameter): name
            for module, name in alive
            if module is not None
            for parameter in module._parameters.values()
            if parameter is not None
        }

    def _add(self, module: Any, name: str, model: int) -> None:
        address = id(module)

        def forget(_: object) -> None:
            self.known.pop(address, None)
            self.models.pop(address, None)

        core.describe_scope(name, "module", type(module).__name__)
        self.known[address] = (weakref.ref(module, forget), core.Scope(name), model)


SCOPES = ModuleScopes()
"""The names of the modules that were called in this process."""
