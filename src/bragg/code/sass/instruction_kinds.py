"""Instructions of machine code that a kernel's author looks for: accesses of memory by width, products of matrices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

INSTRUCTION = re.compile(r"(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9]*)(?P<modifiers>(?:\.\w+)*)")
"""What one begins with, behind the predicate that it depends on."""

_PRODUCT = re.compile(r"[DHIQ](?:G?MMA)|UTC\w*MMA")
_ACCESS = re.compile(r"(?:LDG|STG|LDL|STL|LDS|STS)$")
_OTHER = re.compile(r"(?:LDGSTS|LDSM|STSM|UTMALDG|UTMASTG|UTMAREDG|UBLKCP|ATOM|ATOMG|ATOMS|RED|REDG)$")
_WIDTH = re.compile(r"[US](?:8|16)|32|64|128|256")
_SHAPE = re.compile(r"\d+x\d+x\d+|\d{3,5}")
# Of an access that names no other.
_USUAL_WIDTH = "32"
_MEANINGS = {
    "LDG": "load from global memory",
    "STG": "store to global memory",
    "LDL": "load from local memory, as of a spilled register",
    "STL": "store to local memory, as of a spilled register",
    "LDS": "load from shared memory",
    "STS": "store to shared memory",
    "LDGSTS": "copy from global to shared memory",
    "LDSM": "load of matrices from shared memory",
    "STSM": "store of matrices to shared memory",
    "UTMALDG": "copy of a tile from global to shared memory (TMA)",
    "UTMASTG": "copy of a tile from shared to global memory (TMA)",
    "UTMAREDG": "sum of a tile in shared memory and one in global memory (TMA)",
    "UBLKCP": "copy of a block of memory (TMA)",
    "ATOM": "atomic operation on memory",
    "ATOMG": "atomic operation on global memory",
    "ATOMS": "atomic operation on shared memory",
    "RED": "atomic operation on memory, without a result",
    "REDG": "atomic operation on global memory, without a result",
}


def word_of_kind(kind: str) -> tuple[str, str]:
    """The name of a kind of instructions without widths and shapes, and what they are."""
    name = re.split(r"[. ]", kind)[0]
    return name, "product of matrices on tensor cores" if _PRODUCT.fullmatch(name) else _MEANINGS[name]


def instruction_kinds(texts: Iterable[str]) -> dict[str, int]:
    """How many instructions there are that access memory or multiply matrices: products first, then the most frequent.

    Args:
        texts: Instructions as the disassembler writes them.

    Returns:
        By kind: `LDG.U16`, `LDG.128`, `HGMMA 64x64x16`, `ATOMG`.
    """
    kinds = Counter(kind for text in texts if (kind := _kind(text)))
    return dict(sorted(kinds.items(), key=lambda kind: (not _PRODUCT.match(kind[0]), -kind[1])))


def _kind(text: str) -> str:
    """Empty: another instruction."""
    found = INSTRUCTION.match(text)
    if found is None:
        return ""
    name, modifiers = found["name"], found["modifiers"].split(".")[1:]
    if _PRODUCT.fullmatch(name):
        return " ".join([name, *filter(_SHAPE.fullmatch, modifiers)])
    widths = list(filter(_WIDTH.fullmatch, modifiers))
    if _ACCESS.match(name):
        return f"{name}.{(widths or [_USUAL_WIDTH])[0]}"
    return ".".join([name, *widths]) if _OTHER.match(name) else ""
