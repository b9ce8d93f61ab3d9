"""The repaired twin of small_collectives_slow.py."""

import sys
import tempfile

import torch
from torch import distributed, multiprocessing


def train(rank, meeting_place):
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method=f"file://{meeting_place}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128, device="cuda") for _ in range(40)))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    batch = torch.randn(64, 128, device="cuda")
    for _ in range(60):
        model(batch).square().mean().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        flat = torch.cat([each.flatten() for each in gradients])
        distributed.all_reduce(flat, distributed.ReduceOp.AVG)
        parts = flat.split([each.numel() for each in gradients])
        torch._foreach_copy_(gradients, [part.view_as(each) for part, each in zip(parts, gradients, strict=True)])
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    distributed.destroy_process_group()


if __name__ == "__main__":
    if torch.cuda.device_count() < 2:
        sys.exit("This program needs two GPUs")
    with tempfile.TemporaryDirectory() as directory:
        other = multiprocessing.get_context("spawn").Process(target=train, args=(1, f"{directory}/meeting"))
        other.start()
        train(0, f"{directory}/meeting")
        other.join()
