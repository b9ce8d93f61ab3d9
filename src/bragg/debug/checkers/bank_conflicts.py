"""Blocks that lanes of a warp fetch from the same banks of shared memory, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

from bragg.code.compiled.shared_accesses import CHANGE_OF_OPERANDS, shared_accesses, ways_of
from bragg.code.mlir_text import places_of_mlir
from bragg.code.source_place import SourcePlace
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.host.compiler import gpu_dialect
from bragg.debug.state import Listeners
from bragg.debug.targets import DEFAULT_TARGET, target_named
from bragg.model import Severity

_PRODUCT = re.compile(r"\btt\.dot|\bttng\.warp_group_dot")
_CHANGE_OF_BLOCKS = "Change the block's shape or type, or load it in the order in which it is used"


def _watch(record: LaunchFindings) -> Listeners:
    function = record.launch.program.function
    here = function.__code__.co_filename, function.__code__.co_firstlineno
    try:
        text = gpu_dialect(record.launch, target_named(DEFAULT_TARGET))
    except Exception as error:  # noqa: BLE001 - the compiler is Triton's, and its errors have no common class
        message = f"Triton does not compile this kernel for a Hopper GPU: {_reason(error)}"
        record.at_source(*here, message, "Its bank conflicts are not known", Severity.WARNING)
        return Listeners()
    places = places_of_mlir(text)
    hint = f"{CHANGE_OF_OPERANDS[0].upper()}{CHANGE_OF_OPERANDS[1:]}" if _PRODUCT.search(text) else _CHANGE_OF_BLOCKS
    for access in shared_accesses(text):
        ways = ways_of(access)
        if ways is not None and ways > 1:
            place = places[access.row][0] if places[access.row] else SourcePlace("", 0)
            # Triton's cache knows a kernel by its text: the path in it may be that of a copy.
            is_here = Path(place.file).name == Path(here[0]).name
            record.at_source(
                here[0] if is_here else place.file,
                place.line,
                f"bank conflict: {ways} lanes of a warp {access.kind} one bank of shared memory"
                f" ({'x'.join(map(str, access.shape))} elements of {access.element_bits} bits)",
                hint,
                Severity.NOTE,
            )
    return Listeners()


def _reason(error: Exception) -> str:
    """What the compiler says is wrong: the last line that is an error, or the last of all."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    errors = [found[1] for line in lines if (found := re.search(r"\berror\s*:\s*(.+)", line))]
    return (errors[-1:] or lines[-1:] or [type(error).__name__])[0]


BANK_CONFLICTS = Checker("bank-conflict", "shared memory accesses that wait for each other", False, _watch)
