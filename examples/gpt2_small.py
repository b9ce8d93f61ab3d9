"""Training steps of a network of GPT-2's smallest size, on random tokens, in plain PyTorch.

    bragg run examples/gpt2_small.py
    bragg view gpt2_small.bragg

On a GPU a step is 8 x 1024 tokens; `--tiny` makes network and batch small enough for a laptop.
"""

import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

import bragg

VOCABULARY = 50304  # GPT-2's 50,257 tokens, rounded up to a multiple of 128 for the matrix units.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Size:
    """Dimensions of the network and of a batch; the defaults are GPT-2 small's."""

    blocks: int = 12
    heads: int = 12
    width: int = 768
    batch: int = 8
    length: int = 1024


class Block(nn.Module):
    """Attention and perceptron, each behind a layer norm and beside a shortcut."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_attention, self.norm_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Causal attention; x and result: float [batch, length, width]."""
        parts = self.query_key_value(x).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(mixed.transpose(1, 2).flatten(-2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One block; x and result: float [batch, length, width]."""
        with bragg.scope("attention"):
            x = x + self.attend(self.norm_attention(x))
        with bragg.scope("perceptron"):
            return x + self.perceptron(self.norm_perceptron(x))


class GPT(nn.Module):
    """Tokens to the scores of their successors; the embedding is also the last layer's weight."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, size.width)
        self.positions = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.blocks))
        self.norm = nn.LayerNorm(size.width)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: int64 [batch, length]; result: float [batch, length, VOCABULARY]."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def train(size: Size, steps: int) -> None:
    """Train on random tokens and print the time of each step."""
    torch.manual_seed(0)
    model = GPT(size).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = torch.randint(VOCABULARY, (size.batch, size.length + 1), device=DEVICE)
    inputs, targets = tokens[:, :-1], tokens[:, 1:].flatten()
    for step in range(steps):
        start = time.perf_counter()
        with bragg.scope("forward"), torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets)
        with bragg.scope("backward"):
            optimizer.zero_grad()
            loss.backward()
        with bragg.scope("update"):
            optimizer.step()
        print(f"step {step + 1}: loss {loss.item():.2f}, {time.perf_counter() - start:.3f} s")


def main() -> None:
    """Choose the size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a network and batches that a laptop manages")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    train(Size(blocks=2, heads=4, width=128, batch=2, length=64) if options.tiny else Size(), options.steps)


if __name__ == "__main__":
    main()
