"""What clocks inside of kernels said, in a few lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from bragg.model.kernels.inside import InsideKernel, Line, WarpGroup
from bragg.model.meta.run import Run
from bragg.views.text.probe_facts import probe_lines
from bragg.views.text.style import printable
from bragg.views.text.units import count_text, share_text

_N_LINES = 5
_LEAST = 0.005
# Warps that do the same differ by some percent.
_CLEARLY = 0.05
_ELSE = "everything else: arithmetic, and waits for registers that loads fill"
_WHY = {
    "cost": "costs too much",
    "spills": "spills registers",
    "serialized": "makes matrix products wait for each other",
}


def clock_lines(meta: Mapping[str, Any], n_kernels: int | None = None) -> Iterator[str]:
    """For each kernel, or the first ones, what its warps did, the longest first, and what clocks cost."""
    return map(printable, _lines(meta, n_kernels))


def _lines(meta: Mapping[str, Any], n_kernels: int | None) -> Iterator[str]:
    kernels = Run(meta).inside_kernels
    for kernel in kernels[:n_kernels]:
        yield f"inside {kernel.kernel}: {_headline(kernel)}"
        yield from (f"  {line}" for line in _shares(kernel))
        yield from (f"  {line}" for line in _pairs(kernel))
        yield from (f"  {line}" for line in _turns(kernel))
        yield from (f"  {line}" for line in _groups(kernel))
        yield from (f"  {line}" for line in _values(kernel))
        yield from (f"  {line}" for line in _events(kernel))
        yield from (f"  {line}" for line in _placement(kernel))
        yield from (f"  {line}" for line in probe_lines(kernel))
        for opcode, before, after in kernel.loop_waits if kernel.level else ():
            yield f"  with clocks its loops have {after:,} {opcode}, not {before:,}: they wait at other places"
        plain_blocks, timed_blocks = kernel.blocks_at_once
        if kernel.level and timed_blocks != plain_blocks:
            yield f"  with clocks {count_text(timed_blocks, 'block')} fit on the GPU at once, not {plain_blocks:,}"
        plain_shared, timed_shared = kernel.shared_bytes
        if kernel.level and timed_shared != plain_shared:
            yield f"  with clocks a block has {timed_shared:,} bytes of shared memory, not {plain_shared:,}"
        if kernel.level and kernel.refused:
            yield f"  fewer clocks than asked for: {_refused(kernel)}"
    if n_kernels is not None and len(kernels) > n_kernels:
        yield f"inside {count_text(len(kernels) - n_kernels, 'more kernel')}: bragg info"


def _headline(kernel: InsideKernel) -> str:
    if not kernel.level:
        return f"no clocks: {_refused(kernel)}" if kernel.refused else "no clocks: it was launched less than twice"
    text = f"clocks of {kernel.level} cost {_cost(kernel)}"
    if kernel.covered_cycles and kernel.blocks:
        told = kernel.warps_with_times / (kernel.blocks * max(kernel.warps, 1))
        text += f"; {share_text(min(told, 1))} of the warps told"
        if kernel.covered_cycles < kernel.warp_cycles:
            text += f", {share_text(kernel.covered_cycles / kernel.warp_cycles)} of their time"
    return text + (f"; the last of {count_text(kernel.replays, 'replay')} of its CUDA graph" if kernel.replays else "")


def _cost(kernel: InsideKernel) -> str:
    if kernel.cost is None:
        return "what is not known: no two launches outside of CUDA graphs were compared"
    return f"{share_text(max(kernel.cost, 0))} of a launch ({count_text(kernel.pairs, 'pair')})"


def _shares(kernel: InsideKernel) -> Iterator[str]:
    """`52.6 %  wait for a barrier in memory (matmul.py:67)`, and what is left."""
    if not kernel.covered_cycles:
        low, median, high = kernel.block_ns
        if high:
            yield f"a block takes {median / 1e3:,.1f} us, from {low / 1e3:,.1f} to {high / 1e3:,.1f}"
        return
    by_line: dict[tuple[str, str, int], int] = defaultdict(int)
    for stretch in kernel.stretches:
        place = stretch.lines[-1] if stretch.lines else None
        by_line[stretch.does, place.file if place else "", place.line if place else 0] += stretch.total
    ranked = sorted(by_line.items(), key=lambda item: -item[1])
    shown = [item for item in ranked[:_N_LINES] if item[1] >= _LEAST * kernel.covered_cycles]
    for (does, file, line), cycles in shown:
        where = f" ({PurePosixPath(file).name}:{line})" if file else ""
        yield f"{share_text(cycles / kernel.covered_cycles):>7}  {does}{where}"
    left = max(kernel.covered_cycles - kernel.clock_cycles - sum(cycles for _, cycles in shown), 0)
    yield f"{share_text(left / kernel.covered_cycles):>7}  {_ELSE}"
    if kernel.clock_cycles >= _LEAST * kernel.covered_cycles:
        share = share_text(kernel.clock_cycles / kernel.covered_cycles)
        yield f"{share:>7}  reading the clocks, {count_text(kernel.read_cycles, 'cycle')} each"


def _pairs(kernel: InsideKernel) -> Iterator[str]:
    """Copies by stage of the pipeline, and how far apart warps come to the worst barrier."""
    for copies in kernel.copies:
        where = _where(copies.lines)
        told = ", ".join(f"{latency:,.0f}" for latency in copies.latency)
        waited = ", ".join(f"{each:,.0f}" for each in copies.waited)
        what = "matrix products" if copies.does.endswith("products") else "copies"
        yield (
            f"{what}{where} are {copies.ahead} ahead: by stage, {told} cycles from the beginning of one to the end of "
            f"the wait for it (medians), of which warps wait {waited}"
        )
    if kernel.meetings:
        worst = max(kernel.meetings, key=lambda each: each.skew * each.count)
        yield (
            f"warps come to the barrier{_where(worst.lines)} {worst.skew:,.0f} cycles after each other (median of "
            f"{count_text(worst.count, 'meeting')}, at most {worst.longest:,})"
        )


def _turns(kernel: InsideKernel) -> Iterator[str]:
    """`a turn of its loop (matmul.py:67) takes 498 cycles (median of 2,032), the first 1,203, the longest 5,000`."""
    turns = kernel.turns
    if turns.count:
        yield (
            f"a turn of its loop{_where(turns.lines)} takes {turns.typical:,.0f} cycles (median of {turns.count:,}), "
            f"the first {turns.first:,.0f}, the longest {turns.longest:,}"
        )


def _groups(kernel: InsideKernel) -> Iterator[str]:
    """`critical: warps 4 to 5 wait least, 12.3 % of the time (…); warps 0 to 3 wait 71.0 %`."""
    ranked = sorted(kernel.groups(), key=lambda each: each.wait_share)
    if len(ranked) < 2 or ranked[1].wait_share - ranked[0].wait_share < _CLEARLY:
        return
    least, *others = ranked
    text = f"critical: {_warps(least)} least, {share_text(least.wait_share)} of the time"
    if len(kernel.partitions) > 1 and least.begins:
        text += f" (begins {', '.join(least.begins)})"
    yield "; ".join([text, *(f"{_warps(each)} {share_text(each.wait_share)}" for each in others[:_N_LINES])])


def _warps(group: WarpGroup) -> str:
    is_one = group.first == group.last
    return f"warp {group.first} waits" if is_one else f"warps {group.first} to {group.last} wait"


def _values(kernel: InsideKernel) -> Iterator[str]:
    """`load (matmul.py:12) was given 0 to 127, 63.5 on average, 4,096 times`."""
    for each in kernel.values[:_N_LINES]:
        told = []
        if each.count:
            numbers = f"{each.least:.9g} to {each.greatest:.9g}, {each.total / each.count:.9g} on average"
            told.append(f"{numbers}, {count_text(each.count, 'time')}")
        if each.not_finite:
            told.append(f"NaN or Inf, {count_text(each.not_finite, 'time')}")
        yield f"{each.scope}{_where(each.lines)} was given {'; '.join(told)}"


def _events(kernel: InsideKernel) -> Iterator[str]:
    """`copy takes 498 cycles (median of 128 events, at most 1,203), from k.py:12 to k.py:30; least = 3, most = 0`."""
    for each in kernel.events[:_N_LINES]:
        latency = each.latency
        text = (
            f"{each.name}{_where(each.lines)} takes {latency.typical:,.0f} cycles to its end{_where(each.end_lines)} "
            f"(median of {count_text(latency.count, 'event')}, at most {latency.longest:,})"
        )
        if len(each.by_value) > 1:
            value, slowest = max(each.by_value, key=lambda row: row[1].typical)
            text += f"; most if its value is {value:.9g}, {slowest.typical:,.0f}"
        if each.unmatched:
            text += f"; {count_text(each.unmatched, 'begin or end', 'begins and ends')} without a counterpart"
        yield text


def _where(lines: Sequence[Line]) -> str:
    return f" ({PurePosixPath(lines[-1].file).name}:{lines[-1].line})" if lines else ""


def _placement(kernel: InsideKernel) -> Iterator[str]:
    """`7.8 waves on 132 multiprocessors, 2 blocks at once on each; the tail leaves 3.1 % of them empty; …`."""
    placement = kernel.placement
    if kernel.waves is None or not kernel.level:
        return
    yield (
        f"{kernel.waves:,.1f} waves of blocks: {count_text(placement.multiprocessors, 'multiprocessor')} with "
        f"{placement.resident} at once; {share_text(placement.tail_share)} of these places are empty in the tail; the "
        f"busiest multiprocessor works {share_text(placement.imbalance)} longer than the mean"
    )


def _refused(kernel: InsideKernel) -> str:
    return "; ".join(f"{level}: {_WHY.get(why, why)}" if level else why for level, why in kernel.refused)
