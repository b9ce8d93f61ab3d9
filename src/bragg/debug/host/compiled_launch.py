"""Launches of kernels that were compiled before: `kernel.warmup(...)[grid](...)`, `triton.compile(...)`, Inductor's.

A compiled kernel knows the function that it was made of, the types of its arguments and what it took for constants. The
engine executes that function with exactly these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Runner = Callable[..., Any]

# What Triton's launchers take before the kernel's arguments: grid, stream, function, metadata and hooks.
_BEFORE_ARGUMENTS = 9


class CompiledSource:
    """A function with the types and constants that it was compiled for; launched as the function itself is.

    Args:
        fn: The decorated function.
        types: Parameter to its type, as Triton writes it: `*fp32`, `i64`.
        constants: Path of an argument to its value: (1,) is the second one, (1, 0) the first part of that.
    """

    def __init__(self, fn: Any, types: dict[str, str], constants: dict[tuple[int, ...], Any]) -> None:
        self.fn = fn
        self.types = types
        self._constants = constants

    @classmethod
    def of(cls, source: Any) -> CompiledSource:
        """What Triton's compiler was given: a Python function."""
        signature = {_name(source.fn, key): value for key, value in source.signature.items()}
        constants = getattr(source, "constants", None) or getattr(source, "constexprs", None) or {}
        return cls(source.fn, signature, {_path(source.fn, key): value for key, value in constants.items()})

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments of a launch by parameter; compiled constants win over what is passed in their place."""
        names = list(self.fn.arg_names)
        whole = {path[0]: value for path, value in self._constants.items() if len(path) == 1}
        if len(arguments) == len(names):
            given = dict(enumerate(arguments))
        else:  # Constants are left out.
            passed = [k for k, name in enumerate(names) if self.types.get(name) != "constexpr" and k not in whole]
            given = dict(zip(passed, arguments, strict=False))
        given |= whole
        for path, value in self._constants.items():
            if len(path) > 1 and path[0] in given:
                given[path[0]] = _replaced(given[path[0]], path[1:], value)
        return {names[k]: value for k, value in sorted(given.items())}


def _name(function: Any, key: Any) -> str:
    return str(key) if isinstance(key, str) else str(function.arg_names[key])


def _path(function: Any, key: Any) -> tuple[int, ...]:
    if isinstance(key, str):
        return (function.arg_names.index(key),)
    return tuple(key) if isinstance(key, tuple) else (int(key),)


def _replaced(value: Any, path: tuple[int, ...], part: Any) -> Any:
    if not path or not isinstance(value, tuple):
        return part
    inner = [_replaced(old, path[1:], part) if k == path[0] else old for k, old in enumerate(value)]
    return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)


def compiled_launch(kernel: Any, run: Runner) -> Callable[..., Any]:
    """What stands in for Triton's launcher of a compiled kernel."""

    def launch(*arguments: Any) -> Any:
        if not hasattr(kernel.src, "fn"):
            return run(kernel, arguments[:3], (), {})
        compiled = CompiledSource.of(kernel.src)
        named = compiled.named(arguments[_BEFORE_ARGUMENTS:])
        return run(compiled, arguments[:3], (), {"num_warps": kernel.metadata.num_warps, **named})

    return launch


def run_property(before: Any, run: Runner, is_wanted: Callable[[], bool]) -> property:
    """`CompiledKernel.run`, which executes launches; a property from Triton 3.5 on, an attribute before.

    Args:
        before: The property; None: it is an attribute.
        run: Executes a launch.
        is_wanted: False: Triton launches.
    """

    def get(kernel: Any) -> Any:
        if is_wanted():
            return compiled_launch(kernel, run)
        return kernel.__dict__["run"] if before is None else before.__get__(kernel)

    def put(kernel: Any, value: Any) -> None:
        kernel.__dict__["run"] = value

    return property(get, put)


def inductor_launch(launch: Callable[..., Any], run: Runner, is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    """`CachingAutotuner.run`: kernels of PyTorch's compiler are executed in their first configuration."""

    @functools.wraps(launch)
    def execute(tuner: Any, *arguments: Any, stream: Any = None, **named: Any) -> Any:
        if not is_wanted():
            return launch(tuner, *arguments, stream=stream, **named)
        config = tuner.configs[0] if tuner.configs else tuner.launchers[0].config
        given, grid = tuner._interpret_args_grid(arguments, config)
        constants = {_name(tuner.fn, key): value for key, value in tuner.triton_meta.get("constants", {}).items()}
        constants |= config.kwargs
        names = [name for name in tuner.fn.arg_names if name not in constants]
        everything = {**dict(zip(names, given, strict=False)), **constants}
        return run(tuner.fn, grid, (), everything)

    return execute


def inductor_precompile(compile_: Callable[..., Any], is_wanted: Callable[[], bool]) -> Callable[..., Any]:
    """`CachingAutotuner.precompile`: what is executed need not be compiled."""

    @functools.wraps(compile_)
    def precompile(tuner: Any, *arguments: Any, **named: Any) -> Any:
        return None if is_wanted() else compile_(tuner, *arguments, **named)

    return precompile
