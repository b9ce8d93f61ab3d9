"""C++ symbol names, read by the C++ runtime that is installed."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

_RUNTIMES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")
_IDENTIFIER_LENGTH = re.compile(r"\d+")


@cache
def demangle(symbol: str) -> str:
    """The C++ name of a mangled symbol; everything else as it is.

    A symbol that the runtime cannot read (older ones lack newer type codes) is reduced to its qualified name, without
    arguments.
    """
    if not symbol.startswith("_Z"):
        return symbol
    demangler = _demangler()
    return (demangler and demangler(symbol)) or _qualified_name(symbol) or symbol


@cache
def _demangler() -> Callable[[str], str | None] | None:
    """`__cxa_demangle` of the first runtime that can be loaded; None when there is none."""
    for runtime in _RUNTIMES:
        try:
            function = ctypes.CDLL(runtime).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        function.restype = ctypes.c_void_p
        return lambda symbol: _call(function, symbol)
    return None


def _call(function: Callable[..., int | None], symbol: str) -> str | None:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    status = ctypes.c_int()
    address = function(symbol.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
    if not address:
        return None
    text = ctypes.string_at(address).decode("utf-8", "replace")
    free(address)
    return text


def _qualified_name(symbol: str) -> str:
    """The length-prefixed identifiers at the start of a mangled name: `_ZN2at6nativeI...` is `at::native`."""
    position = 3 if symbol.startswith("_ZN") else 2
    parts: list[str] = []
    while length := _IDENTIFIER_LENGTH.match(symbol, position):
        end = length.end() + int(length[0])
        if end > len(symbol):
            return ""
        parts.append(symbol[length.end() : end])
        position = end
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))
