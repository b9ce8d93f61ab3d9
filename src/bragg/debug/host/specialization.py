"""What Triton would compile for a launch: the types, constants and facts of its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bragg.debug.memory.blocks import Descriptor
from bragg.debug.values import Pointer, Tensor

if TYPE_CHECKING:
    from bragg.debug.host.launch import Launch

# Options of a launch that are not given. Source: CUDAOptions of Triton 3.4 to 3.9.
_DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
_ALIGNED = ["tt.divisibility", 16]

Path = tuple[int, ...]


def specialize(launch: Launch, target: Any) -> SimpleNamespace:
    """What the compiled kernel of a launch says of itself, with the names that Triton's `CompiledKernel` has.

    Args:
        launch: The launch.
        target: Triton's description of a GPU.
    """
    source = SimpleNamespace(fn=_function(launch), signature={}, constants={}, attrs={})
    unspecialized = _unspecialized(launch.jitted)
    for index, (name, value) in enumerate(launch.arguments.items()):
        source.signature[name] = "constexpr"
        if name in launch.constants:
            source.constants[(index,)] = value
            continue
        source.signature[name] = _type(launch.values[name])
        for path, host, converted in _leaves((index,), value, launch.values[name]):
            if host is None or (type(host) is int and host == 1 and name not in unspecialized):
                source.constants[path] = host
                source.signature[name] = _without(source.signature[name], path[1:])
            elif name not in unspecialized and (address := _number(host, converted)) is not None:
                source.attrs[path] = [] if address % 16 else [_ALIGNED]
    metadata = SimpleNamespace(**{**_DEFAULTS, **launch.options}, target=target)
    metadata.name = _chosen_name(launch, source)
    return SimpleNamespace(name=metadata.name, src=source, metadata=metadata)


def _function(launch: Launch) -> Any:
    names = list(launch.arguments)
    constexprs = [index for index, name in enumerate(names) if name in launch.constants]
    return SimpleNamespace(arg_names=names, constexprs=constexprs, __name__=launch.kernel)


def _unspecialized(jitted: Any) -> set[str]:
    """Parameters whose values the compiler does not look at."""
    return {parameter.name for parameter in getattr(jitted, "params", ()) if parameter.do_not_specialize}


def _leaves(path: Path, host: Any, converted: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Arguments with where they are: tuples are arguments too."""
    if isinstance(host, tuple):
        for index, (part, value) in enumerate(zip(host, converted, strict=True)):
            yield from _leaves((*path, index), part, value)
    else:
        yield path, host, converted


def _type(value: Any) -> Any:
    """As Triton writes it: `*fp16`, `i32`, `tensordesc<fp16[64, 64]>`, a tuple of these."""
    if isinstance(value, tuple):
        return tuple(map(_type, value))
    if isinstance(value, Pointer):
        return f"*{_short(value.element.name)}"
    if isinstance(value, Descriptor):
        return f"tensordesc<{_short(value.dtype.name)}{list(value.block_shape)}>"
    if isinstance(value, Tensor):
        return "u1" if value.dtype.bits == 1 else _short(value.dtype.name)
    return "constexpr"


def _without(types: Any, path: Path) -> Any:
    """The types of an argument of which one turned out to be constant."""
    if not path:
        return "constexpr"
    return tuple(_without(part, path[1:]) if index == path[0] else part for index, part in enumerate(types))


def _short(name: str) -> str:
    return name.replace("uint", "u").replace("int", "i")


def _number(host: Any, converted: Any) -> int | None:
    """What must be a multiple of 16 for the kernel to be compiled for that; None: it does not matter."""
    if isinstance(converted, Pointer):
        return converted.buffer.address
    return host if type(host) is int else None


def _chosen_name(launch: Launch, source: SimpleNamespace) -> str:
    """The name that the program gives to this specialization; else the function's."""
    choose = getattr(launch.jitted, "_repr", None)
    if choose is None:
        return launch.kernel
    constants = {source.fn.arg_names[path[0]]: value for path, value in source.constants.items() if len(path) == 1}
    return str(choose(SimpleNamespace(constants=constants, signature=source.signature)))
