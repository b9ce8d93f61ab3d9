"""A kernel as Triton's compiler makes it for a GPU that need not be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bragg.debug.flow.aggregates import rebuilt
from bragg.debug.flow.jitted import is_gluon
from bragg.debug.host.launch import Launch
from bragg.debug.memory.blocks import Descriptor
from bragg.debug.values import Pointer, Tensor

__all__ = ["gpu_dialect"]

# Hopper: compute capability 9.0, 32 lanes in a warp.
_TARGET = ("cuda", 90, 32)
_ALIGNMENT = 16


def gpu_dialect(launch: Launch) -> str:
    """The launch's kernel in Triton's GPU dialect, specialised to its arguments as Triton does.

    Raises:
        Exception: Whatever Triton's compiler raises.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile
    from triton.runtime.jit import JITFunction

    signature, constants, attributes = {}, {}, {}
    for number, (name, value) in enumerate(launch.values.items()):
        kind = "constexpr" if name in launch.constants else _kind(value, launch.arguments[name])
        signature[name] = kind
        for path, part, given, its_kind in _parts((number,), value, launch.arguments[name], kind):
            if its_kind == "constexpr":
                constants[path] = given
            elif not isinstance(part, Descriptor) and _is_aligned(part):
                attributes[path] = [["tt.divisibility", _ALIGNMENT]]
    options = {name: launch.options[name] for name in ("num_warps", "num_stages") if name in launch.options}
    jitted, kind = JITFunction, ASTSource
    if is_gluon(launch.jitted):
        from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

        jitted, kind = GluonJITFunction, GluonASTSource
    source = kind(jitted(launch.program.function), signature, constants, attributes)
    return str(compile(source, target=GPUTarget(*_TARGET), options=options).asm["ttgir"])


def _kind(value: Any, given: Any) -> Any:
    """The type of an argument as Triton's compiler takes it; a tuple of them for a tuple.

    Args:
        value: What the kernel gets.
        given: What the host passed.
    """
    if isinstance(value, tuple):
        return rebuilt(value, list(map(_kind, value, given)))
    if isinstance(value, Descriptor):
        block = ",".join(map(str, value.block_shape))
        layout = "" if value.layout is None else f",{value.layout!r}"
        return f"tensordesc<{_short(value.dtype.name)}[{block}]{layout}>"
    if isinstance(value, Pointer):
        return f"*{_short(value.element.name)}"
    kind = _short(value.dtype.name) if isinstance(value, Tensor) else "constexpr"
    return "constexpr" if kind.startswith("i") and given == 1 else kind


def _parts(path: tuple[int, ...], value: Any, given: Any, kind: Any) -> Iterator[tuple[tuple[int, ...], Any, Any, Any]]:
    """An argument, or each part of a tuple: its place, what the kernel gets, what the host passed, its type."""
    if not isinstance(kind, tuple):
        yield path, value, given, kind
        return
    for number, part in enumerate(zip(value, given, kind, strict=True)):
        yield from _parts((*path, number), *part)


def _short(name: str) -> str:
    return re.sub(r"^(u?)int", lambda found: "u" if found[1] else "i", name)


def _is_aligned(value: Any) -> bool:
    if isinstance(value, Pointer):
        return value.buffer.address % _ALIGNMENT == 0
    return bool(value.dtype.is_int() and value.dtype.bits > 1 and value.known_bounds()[0] % _ALIGNMENT == 0)
