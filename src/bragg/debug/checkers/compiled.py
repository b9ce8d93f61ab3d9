"""A kernel as Triton's compiler makes it for a GPU that need not be there."""

from __future__ import annotations

import re
from typing import Any

from bragg.debug.host.launch import Launch
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
        kind = None if name in launch.constants else _type_name(value)
        if kind is None or (kind.startswith("i") and launch.arguments[name] == 1):
            signature[name], constants[name] = "constexpr", launch.arguments[name]
            continue
        signature[name] = kind
        if _is_aligned(value):
            attributes[(number,)] = [["tt.divisibility", _ALIGNMENT]]
    options = {name: launch.options[name] for name in ("num_warps", "num_stages") if name in launch.options}
    source = ASTSource(JITFunction(launch.program.function), signature, constants, attributes)
    return str(compile(source, target=GPUTarget(*_TARGET), options=options).asm["ttgir"])


def _type_name(value: Any) -> str | None:
    if isinstance(value, Pointer):
        return f"*{_short(value.element.name)}"
    return _short(value.dtype.name) if isinstance(value, Tensor) else None


def _short(name: str) -> str:
    return re.sub(r"^(u?)int", lambda found: "u" if found[1] else "i", name)


def _is_aligned(value: Any) -> bool:
    if isinstance(value, Pointer):
        return value.buffer.address % _ALIGNMENT == 0
    return bool(value.dtype.is_int() and value.dtype.bits > 1 and value.known_bounds()[0] % _ALIGNMENT == 0)
