"""The repaired twin of no_workers_slow.py."""

import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(1000, 100), torch.rand(1000, 100))
if __name__ == "__main__":
    loader = DataLoader(dataset, batch_size=10, num_workers=2, persistent_workers=True)
    for _ in range(10):
        for batch, _ in loader:
            batch.cuda().sum()
    torch.cuda.synchronize()
