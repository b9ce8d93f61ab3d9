"""The DataLoader has no workers."""

import torch


class Items(torch.utils.data.Dataset):
    """Items that take a while to make."""

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(64, 1024, generator=generator).sort().values[0]


if __name__ == "__main__":
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Items(), batch_size=16)
    for batch in loader:
        model(batch.cuda(non_blocking=True)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
