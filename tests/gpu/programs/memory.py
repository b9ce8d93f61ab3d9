"""Tensors from functions of their own, and what PyTorch says of them: memory.py.

Or the seconds of the fastest of some bursts of training steps: memory.py bursts COUNT.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

import torch

MB = 1 << 20


def bytes_of(size: int, count: int) -> list[torch.Tensor]:
    made = []
    for _ in range(count):  # a comprehension may be a frame of its own
        made.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    return made


def weights() -> list[torch.Tensor]:
    return bytes_of(4 * MB, 7) + bytes_of(4096, 30)


def activations() -> list[torch.Tensor]:
    return bytes_of(12 * MB, 5)


def workspace() -> None:
    bytes_of(64 * MB, 1)


def spike() -> list[torch.Tensor]:
    return bytes_of(100 * MB, 2)


def steps() -> dict[str, int]:
    """What each function holds at the peak, as PyTorch's snapshot has it."""
    kept, at_peak = weights(), {}
    for step in range(5):
        made = activations()
        workspace()
        high = spike() if step == 2 else []
        if high:
            at_peak = held_now()
        del made, high
    del kept
    return at_peak


def held_now() -> dict[str, int]:
    """Bytes of the blocks in use by the function that called `bytes_of`."""
    held: Counter[str] = Counter()
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"].startswith("active"):
                names = [frame["name"] for frame in block["frames"] if frame["filename"] == __file__]
                held[names[1] if len(names) > 1 else "?"] += block["size"]
    return dict(held)


def net() -> torch.nn.Module:
    layers = [layer for _ in range(24) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())]
    return torch.nn.Sequential(*layers).cuda()


def burst(model: torch.nn.Module, batch: torch.Tensor) -> float:
    """Seconds of training steps that the host bounds: an allocation for each operator."""
    begin = time.perf_counter()
    for _ in range(100):
        model(batch).square().mean().backward()
        model.zero_grad()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def fastest(count: int) -> float:
    """Seconds of the fastest of some bursts."""
    model, batch = net(), torch.randn(64, 256, device="cuda")
    return min(burst(model, batch) for _ in range(count))


if sys.argv[1:2] == ["bursts"]:
    print(json.dumps(fastest(int(sys.argv[2]))))
else:
    torch.cuda.memory._record_memory_history("state", stacks="python")
    told = steps()
    print(
        json.dumps(
            {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "held": told}
        )
    )
