"""Kernels that are bound by memory, by arithmetic, or by neither: counted_kernels.py SECONDS LAUNCHES.

Each is launched alone for so long and so often, in a range `work <number>`; their names are printed as a JSON list.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import bragg

sys.path.insert(0, str(Path(__file__).parents[3]))

from kernel_pair import argument, grid

from tests.support.kernel_pairs import PAIRS

NUMBERS = (0, 2, 3, 4, 7, 8, 10, 11, 13, 15, 16, 18, 20, 22)  # of the pairs, both sides of the first six


def works() -> Iterator[tuple[str, Callable[[], object]]]:
    """Name of each kernel as it is launched, and what launches it."""
    for place, number in enumerate(NUMBERS):
        if number >= len(PAIRS):
            continue
        sides = (PAIRS[number].broken, PAIRS[number].repaired) if place < 6 else (PAIRS[number].repaired,)
        for variant in sides:
            arguments = [argument(variant, name) for name in variant.kernel.arg_names]
            yield variant.kernel.__name__, lambda v=variant, a=arguments: v.kernel[grid(v)](*a, **v.options)
    source, target = (torch.zeros(1 << 28, dtype=torch.uint8, device="cuda") for _ in range(2))
    yield "copy", lambda: torch.add(source, 1, out=target)
    for side in (1024, 4096, 8192):
        matrix, product = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        yield f"matmul {side}", lambda m=matrix, p=product: torch.matmul(m, m, out=p)
    heads = torch.randn(4, 16, 2048, 64, device="cuda", dtype=torch.bfloat16)
    yield "attention", lambda: torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def launch_all(seconds: float, launches: int) -> None:
    """Each kernel alone, in a range of its own."""
    names = []
    for number, (name, launch) in enumerate(works()):
        launch()
        torch.cuda.synchronize()
        names.append(name)
        torch.cuda.nvtx.range_push(f"work {number}")
        with bragg.scope(f"work {number}"):
            end, done = time.perf_counter() + seconds, 0
            while done < launches or time.perf_counter() < end:
                launch()
                done += 1
                if done % 16 == 0:
                    torch.cuda.synchronize()
            torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        time.sleep(0.02 if seconds else 0)
    print(json.dumps(names))


if __name__ == "__main__":
    launch_all(float(sys.argv[1]), int(sys.argv[2]))
