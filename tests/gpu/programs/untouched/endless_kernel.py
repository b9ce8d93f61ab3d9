"""Launches a kernel that runs for a day, and then sleeps."""

import time

import torch

torch.cuda._sleep(1)
torch.cuda.synchronize()
torch.cuda._sleep(10**14)
print("launched", flush=True)
time.sleep(60)
