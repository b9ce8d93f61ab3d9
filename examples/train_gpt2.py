"""Trains a small GPT-2 of transformers on text that it reads byte by byte; its activation is a Triton kernel.

bragg run --data trace --modules --regions all --sample examples/train_gpt2.py
bragg report train_gpt2.bragg
"""
# ruff: noqa: D101, D102, D103, N803
# mypy: ignore-errors
# A program as users write it.

import argparse

import torch
import triton
import triton.language as tl
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

LENGTH, BATCH = 512, 8
TEXT = "A proton beam gives up most of its energy at one depth, the Bragg peak. " * 400


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


class Activation(torch.nn.Module):
    def forward(self, x):
        return SquaredReLU.apply(x)


class Bytes(Dataset):
    """Pieces of a text, as one number a byte."""

    def __len__(self):
        return len(TEXT) - LENGTH

    def __getitem__(self, index):
        return torch.tensor([ord(letter) for letter in TEXT[index : index + LENGTH]])


def train(n_layers, n_steps):
    torch.manual_seed(0)
    config = GPT2Config(n_layer=n_layers, vocab_size=256, n_positions=LENGTH, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).cuda().train()
    for block in model.transformer.h:
        block.mlp.act = Activation()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = iter(DataLoader(Bytes(), batch_size=BATCH, shuffle=True))
    losses = []
    for _ in range(n_steps):
        tokens = next(loader).to("cuda")
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    print(f"trained: the loss is {train(options.layers, options.steps):.2f}")
