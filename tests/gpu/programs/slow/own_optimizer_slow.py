"""An optimizer of the program's own, which updates one parameter after the other."""

import torch


class Momentum(torch.optim.Optimizer):
    """Gradients with momentum."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        """One update of each parameter."""
        for parameter in self.param_groups[0]["params"]:
            momentum = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
            momentum.mul_(0.9).add_(parameter.grad)
            parameter.sub_(momentum, alpha=1e-3)


model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = Momentum(model.parameters())
batch = torch.randn(64, 256, device="cuda")
for _ in range(100):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
