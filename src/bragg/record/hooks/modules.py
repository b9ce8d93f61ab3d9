"""PyTorch: calls of modules as scopes that are named by the path of the module in its model.

`torch.nn.Module.__call__` is wrapped rather than hooked: PyTorch warns of global hooks when it compiles, and calls
every module on a slower path.
"""

from __future__ import annotations

import weakref

from bragg.record.core import core
from bragg.record.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

__all__ = ["SCOPES", "ModuleScopes", "record_modules"]


def record_modules(torch: ModuleType) -> Callable[[], None]:
    """Record the calls of modules, except those that a compiler only traces.

    Returns:
        What undoes it.
    """
    module_class = torch.nn.Module
    call = module_class.__call__
    is_compiling = torch.compiler.is_compiling
    # By address: a key that is a weak reference would cost more than the scope.
    known = SCOPES.known
    enter = guarded(SCOPES.enter)

    def call_recorded(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_compiling():
            return call(self, *arguments, **options)
        entry = known.get(id(self))
        if entry is None:
            entry = enter(self)
            if entry is None:
                return call(self, *arguments, **options)
        with entry[1]:
            return call(self, *arguments, **options)

    module_class.__call__ = call_recorded

    def undo() -> None:
        if module_class.__call__ is call_recorded:
            module_class.__call__ = call

    return undo


class ModuleScopes:
    """The scope of each module.

    Attributes:
        known: By the address of a module, what forgets it when it dies, its scope, and the address of its model.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Any], core.Scope, int]] = {}

    def enter(self, module: Any) -> tuple[weakref.ref[Any], core.Scope, int]:
        """The entry of a module that is called for the first time: it and all modules below it get their names.

        A module that is in none that was called has a name of its own, as a model has, until one is called that it is
        in: modules are often called alone once, while their model is made. What has one child alone is no such model
        but a wrapper, as of `torch.compile`.
        """
        model = self._model_of(module)
        name, address = type(model).__name__, id(model)
        named = list(model.named_modules())
        is_wrapper = sum("." not in path for path, _ in named) == 2  # itself, whose path is empty, and a child
        below = set() if is_wrapper else {id(child) for path, child in named if path}
        for path, child in named:
            entry = self.known.get(id(child))
            if entry is None or entry[2] in below:
                self._add(child, f"{name}.{path}" if path else name, address)
        return self.known[id(module)]

    def _model_of(self, module: Any) -> Any:
        """The model that a module was added to after that was called; the module itself if there is none."""
        if not module._parameters:  # Such as a loss that is made for one call: it is not worth the search.
            return module
        named_by = {entry[2] for entry in list(self.known.values())}
        models = (entry[0]() for entry in map(self.known.get, named_by) if entry is not None)
        return next((model for model in models if model is not None and _is_in(module, model)), module)

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
        core.describe_scope(name, "module", type(module).__name__)
        self.known[address] = (weakref.ref(module, lambda _: self.known.pop(address, None)), core.Scope(name), model)


def _is_in(module: Any, model: Any) -> bool:
    return any(child is module for _, child in model.named_modules())


SCOPES = ModuleScopes()
"""Of the modules that were called in this process."""
