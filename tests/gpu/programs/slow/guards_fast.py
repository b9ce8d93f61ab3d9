"""The repaired twin of guards_slow.py."""

import torch


class Scale(torch.nn.Module):
    """By the sum of many parameters."""

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.rand(16) for _ in range(400))

    def forward(self, x):
        """As large as x."""
        return x * torch.cat(list(self.parts)).sum()


run = torch.compile(Scale().cuda(), backend="cudagraphs")
batch = torch.randn(64, 64, device="cuda")
with torch.no_grad():
    for _ in range(5):
        run(batch)
    torch.compiler.set_stance(skip_guard_eval_unsafe=True)
    for _ in range(500):
        run(batch)
torch.cuda.synchronize()
