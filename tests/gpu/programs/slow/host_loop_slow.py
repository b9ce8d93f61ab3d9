"""Makes a mask in a Python loop within the step."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))


def mask_of(lengths):
    """One row a sequence."""
    rows = []
    for length in lengths:
        rows.append([1.0 if place < length else 0.0 for place in range(1024)])
    return rows


with torch.no_grad():
    for step in range(100):
        mask = torch.tensor(mask_of(range(step, step + 64)), device="cuda")
        model(mask)
torch.cuda.synchronize()
