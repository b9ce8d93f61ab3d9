"""PyTorch: which module an optimizer updates, where it updates parameters one after the other.

The kernels of `foreach` and `fused` update many parameters at once: they stay the optimizer's.
"""

from __future__ import annotations

from bragg.core import core
from bragg.record.hooks.methods import compiles_what_it_meets, is_traced, wrap_steps
from bragg.record.hooks.torch.modules import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.methods import Undo


def record_updates(torch: ModuleType) -> Undo:
    """Record what updates the parameters of a module that was called below a scope of its name.

    Returns:
        What undoes it.
    """
    is_compiling = is_traced(torch)
    is_compiled = compiles_what_it_meets(torch)
    make_mode = _mode_class(torch)

    def recorded(step: Callable[..., Any]) -> Callable[..., Any]:
        def step_by_modules(self: Any, *arguments: Any, **options: Any) -> Any:
            # The compiler would have to read the mode. A closure is the program's: it calls the model.
            if is_compiling() or is_compiled() or arguments or options or not core.recording():
                return step(self, *arguments, **options)
            if not _goes_one_by_one(self):
                return step(self, *arguments, **options)
            with make_mode(_scopes_of(self, SCOPES.of_parameters())):
                return step(self, *arguments, **options)

        return step_by_modules

    return wrap_steps(torch, recorded)


def _goes_one_by_one(optimizer: Any) -> bool:
    """Whether each kernel updates one parameter: as the program asked, else by PyTorch's default for the device."""
    for group in optimizer.param_groups:
        on_device = any(parameter.device.type != "cpu" for parameter in group["params"])
        if group.get("fused") or (on_device if group.get("foreach") is None else group["foreach"]):
            return False
    return True


def _scopes_of(optimizer: Any, paths: Mapping[int, str]) -> dict[int, core.Scope]:
    """The scope of the module of each parameter, by the addresses of it, of its gradient and of its state."""
    scopes: dict[int, core.Scope] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            path = paths.get(id(parameter))
            if path is not None:
                core.describe_scope(f"{path} [update]", "updates", path)
                scope = core.Scope(f"{path} [update]")
                scopes.update((id(item), scope) for item in (parameter, parameter.grad) if item is not None)
                scopes.update((id(item), scope) for item in optimizer.state.get(parameter, {}).values())
    return scopes


def _mode_class(torch: ModuleType) -> Callable[[Mapping[int, core.Scope]], Any]:
    class UpdatesByModule(torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
        """Calls of PyTorch's functions are in the scope of the parameter that was used last."""

        def __init__(self, scopes: Mapping[int, core.Scope]) -> None:
            super().__init__()
            self._scopes = scopes
            self._scope: core.Scope | None = None

        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
            for argument in arguments:
                found = self._scopes.get(id(argument))
                if found is not None:
                    self._scope = found
                    break
            if self._scope is None:
                return function(*arguments, **(options or {}))
            with self._scope:
                return function(*arguments, **(options or {}))

    return UpdatesByModule
