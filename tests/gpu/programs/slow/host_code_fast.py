"""The repaired twin of host_code_slow.py."""

import numpy as np
import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
images = np.random.default_rng(0).integers(0, 255, (512, 1024), np.uint8)


def prepared(images):
    """What the model takes."""
    scaled = images.astype(np.float64) / 255
    return np.stack([(row - row.mean()) / row.std() for row in scaled]).astype(np.float32)


batch = torch.from_numpy(prepared(images)).cuda()
for _ in range(100):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
