"""Arrays that a function reads instead of taking them as arguments: its compiled program holds them as constants.

%cst = stablehlo.constant dense_resource<__elided__> : tensor<2048x4096xf32> loc(#loc12)
%1 = stablehlo.add %0, %cst : tensor<2048x4096xf32> loc(#loc17)
#loc17 = loc("jit(f)/add"(#loc13))
#loc3 = loc("/home/me/train.py":5:8 to :13)
"""

from __future__ import annotations

import re
from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


LEAST_BYTES = 1 << 22  # smaller ones are compiled in no time
_ELIDED = re.compile(
    r"^ *(%\w+) = stablehlo\.constant dense\w*<__elided__> : tensor<((?:\d+x)+)([\w<>]+)>", re.MULTILINE
)
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE, _REFERENCE, _AT = re.compile(r'"([^"]+)":(\d+):'), re.compile(r"#(loc\d*)\b"), re.compile(r"loc\(#(loc\d+)\)$")
_BITS = re.compile(r"\d+")


def captured_constants(operation: Any, text: str, limit: int, is_library: Callable[[str], bool]) -> str:
    """Bytes of large constants, and the line that uses the largest one: `33554432 train.py:5`; empty: they are small.

    Args:
        operation: The module that JAX compiles.
        text: It, without elements of constants that have more than `limit`.
        limit: That number.
        is_library: Whether a file is none of the user's.
    """
    total = sum(map(_bytes, _ELIDED.finditer(text)))
    if total < LEAST_BYTES:
        return ""
    located = operation.get_asm(large_elements_limit=limit, enable_debug_info=True)
    largest = max(_ELIDED.finditer(located), key=_bytes)
    uses = re.compile(rf"^.*{largest[1]}\b.*$", re.MULTILINE).finditer(located, largest.end())
    at = next((found[1] for use in uses if (found := _AT.search(use[0]))), "")
    places = _places(dict(_LOCATION.findall(located)), at)
    return f"{total} {next((f'{file}:{line}' for file, line in places if not is_library(file)), '')}"


def _bytes(constant: re.Match[str]) -> int:
    sizes, bits = [int(each) for each in constant[2].split("x")[:-1]], _BITS.search(constant[3])
    n_bytes = max(1, int(bits[0]) // 8) if bits else 1
    return prod(sizes) * n_bytes * (2 if "complex" in constant[3] else 1)


def _places(locations: dict[str, str], name: str) -> Iterator[tuple[str, str]]:
    """Files and lines of a location, those of what is called first."""
    waiting, seen = [name], set[str]()
    while waiting:
        each = waiting.pop()
        text = "" if each in seen else locations.get(each, "")
        seen.add(each)
        if place := _FILE.match(text):
            yield place[1], place[2]
        waiting += reversed(_REFERENCE.findall(text))
