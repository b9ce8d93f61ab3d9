"""Methods of PyTorch's classes, replaced for a while."""

from __future__ import annotations

from functools import wraps

from bragg.record.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
    Undo = Callable[[], None]

__all__ = ["compiles_what_it_meets", "is_traced", "wrap", "wrap_engine", "wrap_steps"]


def wrap(kind: Any, name: str, wrapper: Wrapper) -> Undo:
    """Replace a method; what somebody else has replaced meanwhile stays when it is undone."""
    original = getattr(kind, name)
    wrapped = wraps(original)(wrapper(original))
    setattr(kind, name, wrapped)

    def undo() -> None:
        if vars(kind).get(name) is wrapped:
            setattr(kind, name, original)

    return undo


def wrap_engine(torch: ModuleType, wrapper: Wrapper, lost: str) -> Undo | None:
    """Wrap `run_backward` of the autograd engine, which `backward` and `grad` both call.

    Args:
        torch: The module.
        wrapper: Is given the engine's method.
        lost: What it costs if this PyTorch keeps its engine elsewhere.

    Returns:
        What undoes it; None when this PyTorch does.
    """
    variable = torch.autograd.Variable
    engine: Any = getattr(variable, "_execution_engine", None)
    if not hasattr(engine, "run_backward"):
        note(f"PyTorch {torch.__version__} hides its autograd engine: {lost}")
        return None
    run = wrapper(engine.run_backward)

    class WrappedEngine(type(engine)):  # type: ignore[misc]
        """The engine, whose own methods cannot be replaced."""

        def run_backward(self, *arguments: Any, **options: Any) -> Any:
            return run(*arguments, **options)

    variable._execution_engine = WrappedEngine()
    return lambda: setattr(variable, "_execution_engine", engine)


def wrap_steps(torch: ModuleType, wrapper: Wrapper) -> Undo:
    """Wrap `step` of every class of optimizers: of those that have instances now, and of others at their first one."""
    base = torch.optim.Optimizer
    undo_each: list[Undo] = [
        wrap(kind, "step", wrapper)
        for kind in _subclasses(base)
        if "step" in vars(kind) and getattr(kind.step, "hooked", False)
    ]
    original = base._patch_step_function

    @wraps(original)
    def patch_step_function(self: Any) -> None:
        was_hooked = getattr(type(self).step, "hooked", False)
        original(self)
        if not was_hooked:
            undo_each.append(wrap(type(self), "step", wrapper))

    base._patch_step_function = patch_step_function

    def undo() -> None:
        if base._patch_step_function is patch_step_function:
            base._patch_step_function = original
        for undo_one in undo_each:
            undo_one()

    return undo


def is_traced(torch: ModuleType) -> Callable[[], bool]:
    """Whether the compiler reads a program instead of running it, which makes a constant of it."""
    traced: Callable[[], bool] = getattr(torch.compiler, "is_dynamo_compiling", torch.compiler.is_compiling)
    return traced


def compiles_what_it_meets(torch: ModuleType) -> Callable[[], bool]:
    """Whether the compiler would compile a function that is called now, as it does below one that it has broken up."""
    callback = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", lambda: None)
    return lambda: callable(callback())


def _subclasses(kind: Any) -> set[Any]:
    return {kind}.union(*map(_subclasses, kind.__subclasses__()))
