"""Loads batches of ten rows in the process that trains."""

import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.rand(1000, 100), torch.rand(1000, 100))
if __name__ == "__main__":
    for _ in range(10):
        for batch, _ in DataLoader(dataset, batch_size=10):
            batch.cuda().sum()
    torch.cuda.synchronize()
