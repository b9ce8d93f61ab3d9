"""Loads and stores that are narrower than their tiles allow, because an argument may be unaligned."""

from __future__ import annotations

from collections.abc import Sequence

from bragg.analyze.causes.kernel_finding import names_text
from bragg.analyze.causes.thresholds import NARROW_ACCESS, WIDE_ACCESS
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import Access

# Of the time of a kernel that only copies: more instructions for the same bytes.
_SAVED = {1: 0.7, 2: 0.5, 4: 0.15}
_CHANGE = (
    "pass multiples of 16 (pad the tensor, align the slice), take the argument out of do_not_specialize, "
    "or promise it: tl.multiple_of"
)
_CHANGE_OF_DIVISOR = (
    "make it a tl.constexpr: quotients and remainders by it become cheap, and loads and stores wide; "
    "or give each index an axis of the grid"
)


def is_narrow(access: Access, kernel: CompiledKernel) -> bool:
    """Whether a thread accesses less at once than it could of its contiguous part of a tile."""
    threads = kernel.threads
    if not access.is_contiguous or not access.compiled_bytes or not threads:
        return False
    possible = min(access.elements // threads * access.element_bytes, int(WIDE_ACCESS.value))
    return access.compiled_bytes <= NARROW_ACCESS.value and access.compiled_bytes < possible


def culprits(access: Access) -> tuple[str, ...]:
    """The arguments that keep an access narrow: those of its mask where the layout intended more."""
    by_mask = (access.intended_bytes or 0) > (access.compiled_bytes or 0)
    return access.of_mask if by_mask else access.of_address


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if any(loop.n_dots and loop.is_pipelined is False for loop in compiled.loops or ()):
        return None  # that is what narrow loads cost there, and a rule of its own
    narrow = [each for each in _that_count(compiled.accesses or ()) if is_narrow(each, compiled) and culprits(each)]
    if not narrow:
        return None
    worst = min(narrow, key=lambda each: (each.compiled_bytes or 0, each.is_store))
    width = worst.compiled_bytes or 0
    names = [name for each in narrow for name in culprits(each)]
    divided = [each.place for each in compiled.slow or () if not {*names}.isdisjoint(each.by)]
    verb = "stores" if worst.is_store else "loads"
    return Defect(
        f"{verb} {width} B a thread at once instead of 16: nothing says that 16 divides {names_text(names)}",
        _CHANGE_OF_DIVISOR if divided else _CHANGE,
        _SAVED.get(width, 0.0),
        Confidence.PROVEN,
        [*divided, *(each.place for each in (worst, *narrow))],
        (
            Quantity("width as compiled", width, "B"),
            Quantity("width as intended", worst.intended_bytes or width, "B"),
            Quantity("narrow accesses", len(narrow)),
        ),
    )


def _that_count(accesses: Sequence[Access]) -> list[Access]:
    """Those in loops, where there are any."""
    return [each for each in accesses if each.in_loop] or list(accesses)


RULE = kernel_rule(
    "narrow-access",
    _judge,
    "loads and stores of Triton kernels that lost their width to an unaligned argument",
    _CHANGE,
    NARROW_ACCESS,
    WIDE_ACCESS,
)
