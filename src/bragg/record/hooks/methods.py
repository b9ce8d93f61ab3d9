"""Methods of PyTorch's classes, replaced for a while."""

from __future__ import annotations

from functools import wraps

from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
    Undo = Callable[[], None]


class _Wrapped:
    """A method and what it is wrapped in, each of which may go first."""

    def __init__(self, kind: Any, name: str) -> None:
        self._kind, self._name = kind, name
        self._original = self._outermost = getattr(kind, name)
        self._wrappers: list[Wrapper] = []

    @property
    def is_in_place(self) -> bool:
        """Whether nobody else has replaced the method since."""
        return vars(self._kind).get(self._name) is self._outermost

    def add(self, wrapper: Wrapper) -> None:
        self._put([*self._wrappers, wrapper])

    def remove(self, wrapper: Wrapper) -> None:
        if self.is_in_place:
            self._put([other for other in self._wrappers if other is not wrapper])
            if not self._wrappers:
                _WRAPPED.pop((id(self._kind), self._name), None)

    def _put(self, wrappers: list[Wrapper]) -> None:
        self._wrappers, self._outermost = wrappers, self._original
        for wrapper in wrappers:
            self._outermost = wraps(self._outermost)(wrapper(self._outermost))
        setattr(self._kind, self._name, self._outermost)


# By the address of what has the method, which need not be hashable.
_WRAPPED: dict[tuple[int, str], _Wrapped] = {}


def wrap(kind: Any, name: str, wrapper: Wrapper) -> Undo:
    """Wrap a method, or another attribute; what somebody else has replaced meanwhile stays when it is undone."""
    wrapped = _WRAPPED.get((id(kind), name))
    if wrapped is None or not wrapped.is_in_place:
        wrapped = _WRAPPED[id(kind), name] = _Wrapped(kind, name)
    wrapped.add(wrapper)
    return lambda: wrapped.remove(wrapper)


def after(kind: Any, name: str, tell: Callable[..., None]) -> Undo:
    """Call something with what a method returned and with the arguments that it was given; it never fails the program.

    Args:
        kind: What has the method.
        name: Its name.
        tell: Gets the result first.
    """
    told = guarded(tell)

    def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            result = method(*arguments, **options)
            told(result, *arguments)
            return result

        return call

    return wrap(kind, name, wrapper)


def before(kind: Any, name: str, tell: Callable[..., None]) -> Undo:
    """Call something with the arguments that a method is given, before it; it never fails the program."""
    told = guarded(tell)

    def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            told(*arguments)
            return method(*arguments, **options)

        return call

    return wrap(kind, name, wrapper)


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

    def wrapped(engine: Any) -> Any:
        run = wrapper(engine.run_backward)

        class WrappedEngine(type(engine)):  # type: ignore[misc]
            """The engine, whose own methods cannot be replaced."""

            def run_backward(self, *arguments: Any, **options: Any) -> Any:
                return run(*arguments, **options)

        return WrappedEngine()

    return wrap(variable, "_execution_engine", wrapped)


def wrap_steps(torch: ModuleType, wrapper: Wrapper) -> Undo:
    """Wrap `step` of every class of optimizers: of those that have instances now, and of others at their first one."""
    base = torch.optim.Optimizer
    undo_each: list[Undo] = [
        wrap(kind, "step", wrapper)
        for kind in _subclasses(base)
        if "step" in vars(kind) and getattr(kind.step, "hooked", False)
    ]

    def patching(patch: Callable[..., Any]) -> Callable[..., Any]:
        def patch_step_function(self: Any) -> None:
            was_hooked = getattr(type(self).step, "hooked", False)
            patch(self)
            if not was_hooked:
                undo_each.append(wrap(type(self), "step", wrapper))

        return patch_step_function

    undo_patching = wrap(base, "_patch_step_function", patching)

    def undo() -> None:
        undo_patching()
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
