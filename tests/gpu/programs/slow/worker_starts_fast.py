"""The repaired twin of worker_starts_slow.py."""

import torch


class Items(torch.utils.data.Dataset):
    """Items that are read at once."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.full((4096,), index / 512)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    model = torch.nn.Linear(4096, 4096, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    options = {"num_workers": 4, "pin_memory": True, "persistent_workers": True}
    loader = torch.utils.data.DataLoader(Items(), batch_size=32, **options)
    for _ in range(12):
        for batch in loader:
            rows = batch.cuda(non_blocking=True).repeat(512, 1)
            model(rows).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    del loader  # ends its workers while Python still runs, else each is waited for 5 s
    torch.cuda.synchronize()
