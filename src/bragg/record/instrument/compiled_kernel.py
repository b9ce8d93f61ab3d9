"""What a `CompiledKernel` of Triton tells of itself."""

from __future__ import annotations

import inspect
import re
from itertools import accumulate

from bragg.code.instrument.scopes import scopes_of
from bragg.code.instrument.segments import Scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["overrides_machine_code", "partition_warps", "ptxas_options", "source_scopes"]

_OWN_WARPS = re.compile(r'"ttg\.num-warps" = (\d+)')
_PARTITION = re.compile(r"^\s*partition\d+\(.*\bnum_warps\((\d+)\)", re.MULTILINE)


def overrides_machine_code(kernel: Any) -> bool:
    """Whether the program has put machine code in place of what its PTX became."""
    from triton import knobs
    from triton.runtime.cache import get_override_manager

    if not knobs.compilation.override or kernel.src is None:
        return False
    found: object = get_override_manager(kernel.src.hash()).get_file(f"{kernel.metadata.name[:150]}.cubin")
    return found is not None


def source_scopes(kernel: Any) -> Scopes | None:
    """Scopes of its source; None: it has none."""
    function = getattr(getattr(kernel.src, "fn", None), "fn", None)
    try:
        lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return None
    found = scopes_of("".join(lines), first)
    return Scopes(*found, inspect.getsourcefile(function) or "") if found.by_line else None  # type: ignore[arg-type]


def partition_warps(ttgir: str, warps: int) -> tuple[int, ...]:
    """The first warp of each partition of a warp-specialized kernel; of other kernels, warp 0.

    Args:
        ttgir: Of the kernel.
        warps: Of a block.
    """
    own = _OWN_WARPS.search(ttgir)
    if own is None:
        return (0,)
    # Triton puts the largest partitions first, behind the warps that the kernel began with.
    sizes = sorted((int(size) for size in _PARTITION.findall(ttgir)), reverse=True)
    starts = [0, *accumulate(sizes[:-1], initial=int(own[1]))] if sizes else [0]
    return tuple(each for each in starts if each < warps)


def ptxas_options(metadata: Any) -> Sequence[str]:
    """Options of ptxas beside the target, as Triton gives them."""
    from triton import __version__

    more = getattr(metadata, "ptx_options", None)
    allocation = ["--regAllocOptLevel=2"] if tuple(map(int, __version__.split(".")[:2])) >= (3, 7) else []
    fusion = [] if getattr(metadata, "enable_fp_fusion", True) else ["--fmad=false"]
    return [*fusion, *allocation, *(more.split() if more else [])]
