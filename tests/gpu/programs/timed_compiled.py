"""Runs a function of `torch.compile` often; says how often the result was equal, bit for bit.

What launches its kernels: `pytorch`, `triton`, or `graphs`, CUDA graphs.
"""

from __future__ import annotations

import sys

import torch
from torch._inductor import config

LAUNCHES = 60


def work(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.sin(x) * 2 + 1, -1)


kind = sys.argv[1]
for name in ("use_static_cuda_launcher", "use_static_triton_launcher"):
    if hasattr(config, name):
        setattr(config, name, kind != "triton")
compiled = torch.compile(work, mode="reduce-overhead" if kind == "graphs" else None)
torch.manual_seed(0)
x = torch.randn(8192, 8192, device="cuda")
compiled(x)
first = compiled(x).clone()
n_equal = sum(torch.equal(first, compiled(x)) for _ in range(LAUNCHES))
print(f"{n_equal} of {LAUNCHES} results are equal")
