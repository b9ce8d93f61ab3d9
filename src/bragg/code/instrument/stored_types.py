"""Types of the floating-point numbers that each line of a kernel stores, from its TTGIR: PTX does not say them."""

from __future__ import annotations

import re
from collections import defaultdict

from bragg.code.instrument.probes import FloatType
from bragg.code.mlir_text import places_of_mlir
from bragg.code.source_place import user_place

_STORE = re.compile(r"\btt\.store\b.*!tt\.ptr<(\w+)>")
_TYPES = {"f16": FloatType.F16, "bf16": FloatType.BF16, "f32": FloatType.F32}


def stored_types(ttgir: str) -> dict[int, FloatType]:
    """By line of the user's source; lines that store several types, or others, are left out."""
    found: dict[int, set[str]] = defaultdict(set)
    for line, chain in zip(ttgir.splitlines(), places_of_mlir(ttgir), strict=True):
        place = user_place(chain)
        if (match := _STORE.search(line)) and place:
            found[place.line].add(match[1])
    return {line: _TYPES[min(types)] for line, types in found.items() if len(types) == 1 and types <= _TYPES.keys()}
