"""The repaired twin of static_numbers_slow.py."""

import torch


class Scaled(torch.nn.Module):
    """Scales by a number that the compiler takes for a constant."""

    factor = torch.zeros((), device="cuda")

    def forward(self, x):
        """One number."""
        return (x * self.factor).square().sum()


scaled = Scaled()
run = torch.compile(scaled, dynamic=False)
batch = torch.randn(4096, 1024, device="cuda")
for step in range(7):
    scaled.factor.fill_(step + 0.5)
    for _ in range(20):
        run(batch)
torch.cuda.synchronize()
