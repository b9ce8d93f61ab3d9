"""One launch of a kernel with probes, and what it counted."""

from __future__ import annotations

import math
import struct
from collections import defaultdict

import numpy as np

from bragg.code.instrument.assembling import assemble
from bragg.code.instrument.probes import COUNTERS, FloatType, Probe, Site, add_probes
from bragg.code.instrument.rewriting import CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from bragg.code.instrument.blocks import Kernel
    from bragg.record.instrument.driver import Driver


_ASSEMBLE_WITHIN_S = 30.0
# Counting takes many times as long as the kernel; so many blocks are enough for means.
_MAX_BLOCKS = 512
_IS_FIRST, _WARP_MASK, _PASSAGE_MASK = 1 << 63, 0xFF, 0xFFFFFF


class ProbedLaunch:
    """Counts in one launch.

    Args:
        driver: Of the context.
        kernel: The kernel.
        wanted: What is counted.
        types: Types of the numbers that it stores, by line.
        ptxas: Path of ptxas.
        options: Of ptxas, beside the target.
        load: Loads a cubin and returns the driver's handles of the module and the function.

    Raises:
        ValueError: The kernel has nothing of what is counted, or ptxas refuses it.
    """

    def __init__(
        self,
        driver: Driver,
        kernel: Kernel,
        wanted: Collection[Probe],
        types: Mapping[int, FloatType],
        ptxas: str,
        options: Sequence[str],
        load: Callable[[bytes], tuple[int, int]],
    ) -> None:
        probed = add_probes(kernel, wanted, types)
        self._sites = probed.sites
        self._module, self.function = load(assemble(ptxas, probed.text, options, _ASSEMBLE_WITHIN_S).cubin)
        self._driver = driver
        self._counters = 0
        self._ready = self._done = 0
        self._blocks = (0, 0)
        self.is_launched = False

    def begin(self, blocks: int, has_clusters: bool) -> bool:
        """Whether this launch is the one: the first after the counters are zero.

        Args:
            blocks: Of the launch.
            has_clusters: Its blocks must execute the same code: all of them count.
        """
        if not self._counters:
            shift = 0 if has_clusters else max((blocks - 1) // _MAX_BLOCKS, 0).bit_length()
            self._blocks = ((blocks - 1 >> shift) + 1, blocks)
            self._counters = self._driver.zeros(len(self._sites) * COUNTERS * 8)
            control = struct.pack("<QQIIII", self._counters, 0, 0, 0, (1 << shift) - 1, 0)
            self._ready = self._driver.write(self._driver.symbol(self._module, CONTROL), control)
        self.is_launched = self._driver.is_done(self._ready)
        return self.is_launched

    def end(self, stream: int) -> None:
        """After the launch."""
        self._done = self._driver.event()
        self._driver.record(self._done, stream)

    @property
    def is_done(self) -> bool:
        """Whether the launch was made, and the GPU has finished it."""
        return self._done != 0 and self._driver.is_done(self._done)

    def results(self) -> dict[str, Any]:
        """What was counted, as a JSON object: a row for each line and what it does."""
        image = self._driver.read(self._counters, len(self._sites) * COUNTERS * 8)
        counters = np.frombuffer(image, "<u8").reshape(-1, COUNTERS)
        by_line: dict[Site, list[int]] = defaultdict(list)  # equal sites: accesses of one statement of the source
        for number, site in enumerate(self._sites):
            if counters[number, 0]:
                by_line[site].append(number)
        return {
            "probed_blocks": self._blocks[0],
            "probes": [_row(site, counters[numbers]) for site, numbers in by_line.items()],
        }


def _row(site: Site, counters: NDArray[np.uint64]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "probe": site.probe.value,
        "does": site.does,
        "place": [{"file": place.file, "line": place.line, "function": place.function} for place in site.place],
        "warps": int(counters[:, 0].sum()),
    }
    if site.type is not None:
        greatest = _number(int(counters[:, 1].max()), site.type)
        first = [int(each) for each in counters[:, 2] if each]
        row["greatest"] = greatest if math.isfinite(greatest) else str(greatest)
        if first:
            earliest = min(map(_first, first), key=lambda each: each[2])
            row["first_bad"] = [*earliest]
        return row
    row["lanes"] = int(counters[:, 1].sum())
    if site.access_bytes:
        row |= {"access_bytes": site.access_bytes, "sectors": int(counters[:, 2].sum())}
    return row | ({"is_back": True} if site.is_back else {})


def _first(told: int) -> tuple[int, int, int]:
    """Block, warp and passage."""
    told &= ~_IS_FIRST
    return told >> 32, told >> 24 & _WARP_MASK, told & _PASSAGE_MASK


def _number(bits: int, kind: FloatType) -> float:
    if kind is FloatType.F16:
        return float(np.array(bits, np.uint16).view(np.float16))
    return float(np.array(bits << 16 if kind is FloatType.BF16 else bits, np.uint32).view(np.float32))
