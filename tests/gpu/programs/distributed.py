"""Two ranks of DistributedDataParallel: by gloo on one device, `cuda` or the argument's, or with `nccl` on one each."""

from __future__ import annotations

import sys
import tempfile

import torch
from torch import distributed, multiprocessing, nn

STEPS = 5


def train(rank: int, meeting_place: str, device: str) -> None:
    backend = "gloo"
    if device == "nccl":
        backend, device = "nccl", "cuda"
        torch.cuda.set_device(rank)
    distributed.init_process_group(backend, init_method=f"file://{meeting_place}", rank=rank, world_size=2)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)
    parallel = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(parallel.parameters(), 1e-3)
    x = torch.randn(64, 512, device=device)
    for _ in range(STEPS):
        parallel(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.synchronize()
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        multiprocessing.spawn(train, (f"{directory}/meeting", sys.argv[1] if sys.argv[1:] else "cuda"), nprocs=2)
