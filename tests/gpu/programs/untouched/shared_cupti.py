"""Launches kernels while two more tools subscribe to CUPTI by version 2; prints how many kernels each was told of."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[4]))
from tests.support.cupti_subscriber import Subscriber

x = torch.zeros(64, device="cuda")
torch.cuda.synchronize()
others = [Subscriber("one tool"), Subscriber("another")]
print([other.result for other in others])
for other in others:
    if other.result == 0:
        other.collect()
for _ in range(20_000):
    x.add_(1)
torch.cuda.synchronize()
others[0].flush()
print([other.kernels for other in others])
