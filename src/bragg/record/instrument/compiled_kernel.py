"""What a `CompiledKernel` of Triton tells of itself."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from itertools import accumulate

from bragg.code.instrument.scopes import scopes_of
from bragg.code.instrument.segments import Scopes, lines_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from bragg.code.instrument.blocks import Kernel
    from bragg.code.instrument.segments import EventCall


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


def source_scopes(kernel: Any, code: Kernel) -> Scopes | None:
    """Scopes and events of its source file that its code comes from; None: there are none.

    Args:
        kernel: A `CompiledKernel`.
        code: Its PTX.
    """
    function: Any = getattr(getattr(kernel.src, "fn", None), "fn", None)
    try:
        lines, _ = inspect.findsource(function)
        file = inspect.getsourcefile(function) or ""
    except (OSError, TypeError):
        return None
    found = scopes_of("".join(lines), 1)
    statements = [statement for block in code.blocks for statement in block.statements]
    used = {line for statement in statements for line in lines_in(statement, file)}
    valued = {line: call for line, call in found.events.items() if call.has_value and line in used}
    with_effect = {line for statement in statements if statement.activity for line in lines_in(statement, file)}
    events = _event_lines(found.events, with_effect)
    if not (used & found.by_line.keys() or valued or events):
        return None
    return Scopes(found.by_line, found.by_first_line, file, valued, events)


def _event_lines(events: Mapping[int, EventCall], with_effect: Collection[int]) -> dict[int, list[EventCall]]:
    """Events without values by the lines that they are next to, in their functions."""
    by_line: dict[int, list[EventCall]] = defaultdict(list)
    for line, call in events.items():
        after = [each for each in with_effect if line < each <= call.last_line]
        before = [each for each in with_effect if call.first_line <= each < line]
        if not call.has_value and (after if call.begins else before):
            by_line[min(after) if call.begins else max(before)].append(call)
    return dict(by_line)


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
