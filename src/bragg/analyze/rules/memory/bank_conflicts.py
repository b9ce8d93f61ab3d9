"""Tiles in shared memory that the lanes of a warp access one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel
from bragg.analyze.causes.kernel_finding import Defect, finding_of_kernel
from bragg.analyze.causes.needs import CODE, OF_KERNELS
from bragg.analyze.causes.thresholds import MANY_CONFLICTS, MANY_WAYS, MUCH_GPU
from bragg.analyze.engine import Rule
from bragg.code.compiled.shared_accesses import CHANGE_OF_OPERANDS
from bragg.model import Confidence, Finding, Quantity
from bragg.model.finding import percent_text
from bragg.model.kernels.compiled import BankConflict, TensorCores

# Of what would be saved if all of the time were the access: on an H100 the twins of two products with 8 and 4 lanes in
# a bank took 69 % and 47 % less time, which also load more at once.
_SAVED = 0.7
# Of `--counters-exact`, in all accesses of shared memory: wavefronts, and those that conflicts add.
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_ADDED = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def _find(evidence: Evidence) -> Iterator[Finding]:
    for kernel in evidence.hot_kernels:
        defect = _judge(kernel)
        if defect is not None:
            yield finding_of_kernel(evidence, "bank-conflicts", kernel, defect)


def _judge(kernel: HotKernel) -> Defect | None:
    """What was counted decides, if it was, else what the layouts of the code tell."""
    found, counted = _of_code(kernel), _counted(kernel)
    if counted is None and not found:
        return None
    if counted is not None and counted < MANY_CONFLICTS.value:
        return None
    places = [each.place for each in found]
    share, is_measured = kernel.share_of_lines(places)
    ways = max((each.ways for each in found), default=0)
    saved = (share if is_measured else _SAVED) * (1 - 1 / ways if ways else counted or 0.0)
    return Defect(
        _text(found, counted),
        CHANGE_OF_OPERANDS,
        saved,
        Confidence.HEURISTIC if counted is None and not is_measured else Confidence.LIKELY,
        places,
        (
            *([Quantity("lanes in one bank", ways)] if ways else []),
            *([Quantity("size of the tile", found[0].elements * found[0].element_bytes, "B")] if ways else []),
            *([Quantity("share of its samples", share, "share")] if is_measured else []),
            *([] if counted is None else [Quantity("wavefronts that conflicts add", counted, "share")]),
        ),
        is_measured and ways > 0,
    )


def _of_code(kernel: HotKernel) -> list[BankConflict]:
    """Conflicts in loops, that of most waiting first; without tensor cores the arithmetic takes longer."""
    compiled = kernel.compiled
    dots = compiled.dots if compiled else None
    if compiled is None or (dots and compiled.tensor_cores is TensorCores.NONE):
        return []
    if any(each.widened_from for each in dots or ()):
        return []  # of 32 bits without need, which is their cause
    found = [each for each in compiled.conflicts or () if each.in_loop and each.ways >= MANY_WAYS.value]
    return sorted(found, key=lambda each: -each.ways * each.elements * each.element_bytes)


def _counted(kernel: HotKernel) -> float | None:
    """Part of the wavefronts of shared memory that conflicts add, 0 to 1; None: it was not counted."""
    metrics = kernel.profile.metrics
    if _WAVEFRONTS not in metrics or _ADDED not in metrics:
        return None
    whole, added = (float(metrics[name].own[kernel.nodes].sum()) for name in (_WAVEFRONTS, _ADDED))
    return min(added / whole, 1.0) if whole > 0 else None


def _text(found: Sequence[BankConflict], counted: float | None) -> str:
    if not found:
        return f"waits for bank conflicts in {percent_text(counted or 0.0)} of its accesses of shared memory"
    verb = "writes" if found[0].is_store else "reads"
    return f"{verb} a tile in shared memory with {found[0].ways} lanes of a warp in one bank, in each turn of a loop"


RULE = Rule(
    _find,
    "tiles in shared memory for which lanes of a warp wait for each other, in loops of Triton kernels",
    (OF_KERNELS, CODE),
    (MUCH_GPU, MANY_WAYS, MANY_CONFLICTS),
    CHANGE_OF_OPERANDS,
)
