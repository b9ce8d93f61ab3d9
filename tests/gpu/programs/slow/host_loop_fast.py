"""The repaired twin of host_loop_slow.py."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))


def mask_of(lengths):
    """One row a sequence."""
    ends = torch.arange(lengths.start, lengths.stop, device="cuda")
    return (torch.arange(1024, device="cuda") < ends[:, None]).float()


with torch.no_grad():
    for step in range(100):
        mask = mask_of(range(step, step + 64))
        model(mask)
torch.cuda.synchronize()
