"""Facts of a kernel from PTX and from machine code: what became of its lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bragg.code.compiled.operations import place_of_chain
from bragg.code.source_map import KernelCode, Stage
from bragg.code.source_place import CallChain
from bragg.model import Place
from bragg.model.kernels.compiled import Counted, TensorCores

_PREDICATE = r"^\s*(?:@!?%p\d+ )?"
_ACCESS = re.compile(_PREDICATE + r"(?:ld|st)\.global(?:\.[\w:]+?)*?(?:\.v(?P<count>[248]))?\.[bfus](?P<bits>\d+)\b")
_COPY = re.compile(_PREDICATE + r"cp\.async\.c[ag]\.shared\.global.*?\], (?P<bytes>0x[0-9a-f]+|\d+)")
_SHARED = re.compile(_PREDICATE + r"(?:st(?:\.volatile)?\.shared|stmatrix)")
_DOUBLE = re.compile(_PREDICATE + r"(?:add|sub|mul|fma|div|rcp|sqrt|neg|abs|min|max)\.(?:[\w]+\.)*f64\b")
_TENSOR_CORES = (
    (TensorCores.TCGEN05, "tcgen05.mma"),
    (TensorCores.WGMMA, "wgmma.mma_async"),
    (TensorCores.MMA, "mma.sync"),
)
_SPILL = re.compile(r"(?:@!?U?P\w+ )?(?:STL|LDL)\b")


def width_at(code: KernelCode, chain: CallChain) -> int | None:
    """Bytes of the widest access to global memory that a place became in the PTX; None: of none."""
    lines = code.lines(Stage.PTX)
    widths = [_width(lines[row]) for row in code.lines_of_place(Stage.PTX, chain)]
    return max((width for width in widths if width), default=None)


def _width(line: str) -> int:
    if access := _ACCESS.match(line):
        return int(access["count"] or 1) * int(access["bits"]) // 8
    copy = _COPY.match(line)
    return int(copy["bytes"], 0) if copy else 0


def is_through_shared(code: KernelCode, chain: CallChain) -> bool:
    """Whether what a place became in the PTX writes to shared memory."""
    lines = code.lines(Stage.PTX)
    return any(_SHARED.match(lines[row]) for row in code.lines_of_place(Stage.PTX, chain))


def tensor_cores(text: str) -> TensorCores:
    """The newest instructions of a PTX that multiply matrices."""
    return next((kind for kind, instruction in _TENSOR_CORES if instruction in text), TensorCores.NONE)


def doubles(code: KernelCode) -> tuple[Counted, ...]:
    """Arithmetic in 64-bit floating point by line."""
    pairs = zip(code.lines(Stage.PTX), code.places(Stage.PTX), strict=True)
    return counted(chain for line, chain in pairs if ".f64" in line and _DOUBLE.match(line))


def spills(code: KernelCode) -> tuple[Counted, ...]:
    """Accesses to local memory by line."""
    return counted(each.chain for each in code.instructions if _SPILL.match(each.text))


def counted(chains: Iterable[CallChain]) -> tuple[Counted, ...]:
    """How many come from each line, most first."""
    found: Counter[Place] = Counter(map(place_of_chain, chains))
    return tuple(Counted(place, count) for place, count in found.most_common())
