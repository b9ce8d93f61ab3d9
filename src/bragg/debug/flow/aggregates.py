"""Values made of several others: classes of the author that kernels use (`@tl.aggregate`), and named tuples."""

from __future__ import annotations

import dataclasses
import dis
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any, NoReturn

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.flow.jitted import is_jitted


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """The values that another one is made of; None: it is not made of others."""
    if isinstance(value, tuple) and (type(value) is tuple or hasattr(value, "_fields")):
        return value
    if isinstance(value, Aggregate):
        return tuple(value.fields.values())
    if hasattr(type(value), "is_kernel_value"):
        return tuple(getattr(value, field.name) for field in dataclasses.fields(value))
    return None


def rebuilt(value: Any, parts: Sequence[Any]) -> Any:
    """A value like another one, made of other parts."""
    if type(value) is tuple:
        return tuple(parts)
    if isinstance(value, Aggregate):
        return Aggregate(value.kind, dict(zip(value.fields, parts, strict=True)))
    return type(value)(*parts)


class AggregateKind:
    """A class that was decorated with `@tl.aggregate`, to be called in a kernel.

    Args:
        decorated: What the decorator made of the class.
        translated: Gives the engine's object for one that kernels refer to.
        with_kernel_names: Gives a function with the engine's meaning of its names.
    """

    def __init__(
        self,
        decorated: type,
        translated: Callable[..., Any],
        with_kernel_names: Callable[[FunctionType], Callable[..., Any]],
    ) -> None:
        self.decorated = decorated
        self._translated, self._with_kernel_names = translated, with_kernel_names
        # What the class was before it was decorated is known to the decorator's functions alone.
        created = decorated.__new__
        held = {
            name: cell.cell_contents
            for name, cell in zip(created.__code__.co_freevars, created.__closure__ or (), strict=True)
        }
        self._initialise = held["init"] if "init" in held else held["cls"].__init__
        annotations = held.get("all_annotations") or held["cls"].__annotations__
        self.names = tuple(annotations)
        self._defaults = getattr(decorated, "__aggregate_defaults__", {})

    def __call__(self, *arguments: Any, **named: Any) -> Aggregate:
        """A new value."""
        made = Aggregate(self, {})
        if hasattr(self._initialise, "__triton_builtin__"):
            object.__setattr__(made, "fields", self._by_position(arguments, named))
            return made
        object.__setattr__(made, "is_complete", False)
        self._called_by_host(self._initialise)(made, *arguments, **named)
        missing = [name for name in self.names if name not in made.fields]
        if missing:
            raise KernelFault(f"{self.decorated.__name__}() leaves {missing[0]} without a value")
        object.__setattr__(made, "is_complete", True)
        return made

    def _by_position(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        given = dict(zip(self.names, arguments, strict=False)) | named
        defaults = {name: self._translated(value) for name, value in self._defaults.items()}
        unknown = [name for name in given if name not in self.names]
        missing = [name for name in self.names if name not in given and name not in defaults]
        if unknown or missing or len(arguments) > len(self.names):
            what = f"has no {unknown[0]}" if unknown else f"needs {missing[0]}" if missing else "has fewer parts"
            raise KernelFault(f"{self.decorated.__name__} {what}", hint=f"Its parts are: {', '.join(self.names)}")
        return {name: given.get(name, defaults.get(name)) for name in self.names}

    def method(self, name: str) -> Any:
        """A function of the class.

        Raises:
            KernelFault: It has none of that name.
        """
        member = self.decorated.__dict__.get(name)
        if member is None:
            raise KernelFault(f"{self.decorated.__name__} has no part or function {name}")
        if is_jitted(member) or not isinstance(member, FunctionType):
            return self._translated(member, name)
        return self._called_by_host(member)

    def _called_by_host(self, function: Any) -> Callable[..., Any]:
        """A function that Triton calls while it compiles: plain Python on the kernel's values.

        Raises:
            Unsupported: It builds code for the compiler itself.
        """
        function = getattr(function, "fn", function) if not is_jitted(function) else function
        if not isinstance(function, FunctionType):
            return self._translated(function)  # type: ignore[no-any-return]
        if _uses_compiler(function.__code__):
            raise Unsupported(
                f"{function.__qualname__} builds code for the compiler", hint="Make it a @triton.jit function"
            )
        return self._with_kernel_names(function)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.method(name)


def _uses_compiler(code: CodeType) -> bool:
    """It does something with what Triton's compiler passes to functions that ask for it."""
    asked = {"_semantic", "_generator"} & set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    used = (str(one.argval) for one in dis.get_instructions(code) if one.opname.startswith("LOAD"))
    return bool(asked) and any(name in argument for argument in used for name in asked)


class Aggregate:
    """One value of such a class.

    Args:
        kind: The class.
        fields: Its parts by name.
    """

    __slots__ = ("fields", "is_complete", "kind")

    kind: AggregateKind
    fields: dict[str, Any]
    is_complete: bool

    def __init__(self, kind: AggregateKind, fields: dict[str, Any]) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "is_complete", True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.fields:
            return self.fields[name]
        return partial(self.kind.method(name), self)

    def __getitem__(self, key: Any) -> Any:
        return self.kind.method("__getitem__")(self, key)

    def __setattr__(self, name: str, value: Any) -> None:
        if self.is_complete:
            _refuse_change(self.kind.decorated.__name__, name)
        if name not in self.kind.names:
            raise KernelFault(f"{self.kind.decorated.__name__} has no part {name}", hint="Annotate it in the class")
        self.fields[name] = value

    def __repr__(self) -> str:
        return f"{self.kind.decorated.__name__}({', '.join(f'{k}={v!r}' for k, v in self.fields.items())})"


def _refuse_change(kind: str, name: str) -> NoReturn:
    raise KernelFault(f"{name} of {kind} cannot be changed", hint="Make a new one: tl.aggregate_replace(value, …)")


def aggregate_replace(value: Any, **changes: Any) -> Any:
    """The value with some parts replaced."""
    if not isinstance(value, Aggregate):
        raise KernelFault(f"tl.aggregate_replace takes an aggregate, not {value!r}")
    return value.kind(**{**value.fields, **changes})
