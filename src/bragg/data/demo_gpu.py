"""Trains a small network whose activation is a Triton kernel: PyTorch and Triton in one profile."""
# ruff: noqa: D101, D102, D103, N803
# mypy: ignore-errors
# A program as users write it.

import torch
import triton
import triton.language as tl

import bragg

N_STEPS, BATCH, WIDTH = 40, 2048, 1024


@triton.jit
def squared_relu_kernel(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x = tl.maximum(x, 0.0)
    tl.store(y_ptr + offsets, x * x, mask=mask)


class SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        squared_relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x.clamp(min=0) * gradient


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.second = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.second(SquaredReLU.apply(self.first(x)))


def train():
    torch.manual_seed(0)
    model = Network().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randn(BATCH, WIDTH, device="cuda")
    for _ in range(N_STEPS):
        with bragg.scope("forward"):
            loss = torch.nn.functional.mse_loss(model(batch), batch)
        with bragg.scope("backward"):
            loss.backward()
        with bragg.scope("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


if __name__ == "__main__":
    print(f"trained: the loss is {train():.3f}")
