"""What probes inside of kernels counted, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from bragg.model.kernels.inside import Count, InsideKernel
from bragg.views.text.units import count_text, share_text

_N_LINES = 10
_LANES, _SECTOR_BYTES = 32, 32


def probe_lines(kernel: InsideKernel) -> Iterator[str]:
    """What one launch counted: accesses, branches and values, those of most warps first."""
    if not kernel.probed_blocks:
        return
    yield f"one launch with probes, {count_text(kernel.probed_blocks, 'block')}:"
    ranked = sorted(kernel.counts, key=lambda each: (each.first_bad is None, -each.warps))
    yield from (f"  {_text(each)}" for each in ranked[:_N_LINES])
    if len(ranked) > _N_LINES:
        yield f"  and {len(ranked) - _N_LINES:,} places more: bragg info --json"


def _text(count: Count) -> str:
    """`loads (k.py:20): 8.0 sectors a request, 4.0 if they were packed; 16.0 of 32 lanes`."""
    where = f" ({PurePosixPath(count.lines[-1].file).name}:{count.lines[-1].line})" if count.lines else ""
    return f"{count.does}{where}: {_what(count)}"


def _what(count: Count) -> str:
    if count.greatest is not None:
        told = f"greatest magnitude {count.greatest:.6g}"
        if count.first_bad is not None:
            block, warp, passage = count.first_bad
            told += f"; the first NaN or Inf in block {block:,}, warp {warp}, at its passage {passage + 1:,}"
        return told
    warps = max(count.warps, 1)
    lanes = count.lanes / warps
    if count.access_bytes:
        packed = lanes * count.access_bytes / _SECTOR_BYTES
        return (
            f"{count.sectors / warps:.1f} sectors a request, {packed:.1f} if they were packed; "
            f"{lanes:.1f} of {_LANES} lanes"
        )
    if count.turns is not None:
        return f"{count.turns:,.1f} turns on average"
    return f"{share_text(lanes / _LANES)} of the lanes branch"
