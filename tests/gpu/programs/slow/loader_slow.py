"""The step waits for its batch: the loader has no workers."""

import time

import torch


class Items(torch.utils.data.Dataset):
    """Items that take a while to read."""

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((4096,), index / 1600)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    model = torch.nn.Linear(4096, 4096, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Items(), batch_size=16)
    for batch in loader:
        rows = batch.cuda().repeat(1024, 1)
        model(rows).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
