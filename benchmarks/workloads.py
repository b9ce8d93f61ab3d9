"""The programs that are measured. Each prepares itself untimed, then runs a burst that ends synchronised."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Scope = Callable[[str], AbstractContextManager[Any]]


class Workload(Protocol):
    """One program.

    Attributes:
        launches: Kernels that one burst launches, roughly; turns a difference in seconds into one per launch.
    """

    launches: int

    def prepare(self) -> None:
        """Whatever a program does before its steady state; runs anew each time a contender was attached or detached."""

    def run(self, scope: Scope) -> None:
        """One burst, the same work every time, with the contender's scopes; returns when the device is done."""


def synchronize() -> None:
    """Wait for the device."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class DynamicNet:
    """A polynomial of random order fitted with SGD: some 28 tiny kernels a step, so the host is the limit."""

    def __init__(self, steps: int = 600) -> None:
        self.steps = steps
        self.launches = steps * 28
        self.x = torch.linspace(-3.14, 3.14, 2000, device=DEVICE)
        self.y = torch.sin(self.x)
        self.weights = [nn.Parameter(torch.zeros((), device=DEVICE)) for _ in range(5)]
        self.optimizer = torch.optim.SGD(self.weights, lr=1e-8, momentum=0.9)

    def forward(self) -> torch.Tensor:
        """The polynomial at every x: order 3, 4 or 5."""
        a, b, c, d, e = self.weights
        y = a + b * self.x + c * self.x**2 + d * self.x**3
        for exponent in range(4, random.randint(4, 6)):
            y = y + e * self.x**exponent
        return y

    def step(self, scope: Scope) -> None:
        """One step of training."""
        with scope("forward"):
            loss = functional.mse_loss(self.forward(), self.y, reduction="sum")
        with scope("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with scope("update"):
            self.optimizer.step()

    def prepare(self) -> None:
        """Warm up."""
        self.run(nullcontext, steps=50)

    def run(self, scope: Scope, steps: int | None = None) -> None:
        """The same random orders every time."""
        random.seed(0)
        for _ in range(steps or self.steps):
            self.step(scope)
        synchronize()


class TinyTriton:
    """The smallest useful Triton kernel, launched back to back."""

    launches = 60_000

    def __init__(self) -> None:
        from triton_kernels import increment

        self.kernel = increment
        self.x = torch.zeros(1024, device=DEVICE)

    def prepare(self) -> None:
        """Compile and warm up."""
        for _ in range(200):
            self.kernel[(1,)](self.x, 1024)
        synchronize()

    def run(self, scope: Scope) -> None:
        """A scope around every hundred launches."""
        kernel, x = self.kernel, self.x
        for _ in range(self.launches // 100):
            with scope("hundred"):
                for _ in range(100):
                    kernel[(1,)](x, 1024)
        synchronize()


class Block(nn.Module):
    """One transformer block of GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then the perceptron; x: float [batch, length, width]."""
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.view(split).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt2Small(nn.Module):
    """GPT-2 small: 12 blocks of width 768, 12 heads, 50,257 tokens, tied embeddings."""

    def __init__(self, width: int = 768, heads: int = 12, blocks: int = 12, tokens: int = 50_257, length: int = 1024):
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits; tokens: int64 [batch, length]."""
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.token.weight)


class Gpt2Step:
    """Training of GPT-2 small on random tokens in bf16: the device is the limit, about 25 ms a step on an H200."""

    # 8 x 1024 tokens: 0.74 GFLOP a token at about 300 TFLOP/s, and 6 ms of softmax over the vocabulary and AdamW.
    def __init__(self, steps: int = 20, batch: int = 8, length: int = 1024) -> None:
        torch.manual_seed(0)
        self.steps = steps
        self.launches = steps * 1_500
        self.model = Gpt2Small(length=length).to(DEVICE)
        self.tokens = torch.randint(50_257, (batch, length + 1), device=DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=DEVICE == "cuda")

    def step(self, scope: Scope) -> None:
        """One step of training."""
        with scope("forward"), torch.autocast(DEVICE, dtype=torch.bfloat16):
            logits = self.model(self.tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten())
        with scope("backward"):
            loss.backward()
        with scope("update"):
            self.optimizer.step()
            self.optimizer.zero_grad()

    def prepare(self) -> None:
        """Warm up."""
        self.run(nullcontext, steps=3)

    def run(self, scope: Scope, steps: int | None = None) -> None:
        """Train on one batch again and again."""
        for _ in range(steps or self.steps):
            self.step(scope)
        synchronize()


class GraphReplay:
    """A CUDA graph of small kernels, captured while the contender is attached, replayed many times."""

    def __init__(self, nodes: int = 500, replays: int = 1000) -> None:
        self.nodes, self.replays = nodes, replays
        self.launches = nodes * replays
        self.x = torch.zeros(1024, device=DEVICE)
        self.graph = torch.cuda.CUDAGraph()

    def prepare(self) -> None:
        """Capture the graph anew, so that the contender sees it being made."""
        self.x.add_(1)
        synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(self.nodes):
                self.x.add_(1)
        for _ in range(20):
            self.graph.replay()
        synchronize()

    def run(self, scope: Scope) -> None:
        """Replay under one scope."""
        with scope("replay"):
            for _ in range(self.replays):
                self.graph.replay()
            synchronize()


class Decode:
    """One token through seven small layers, without gradients: 574 operators a step and one kernel for each few."""

    WIDTH = 16
    LAYERS = 7

    def __init__(self, steps: int = 100) -> None:
        self.steps = steps
        self.launches = steps * self.LAYERS * 15
        width = self.WIDTH
        self.layers = [
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "inputs": nn.Linear(width, 3 * width),
                    "output": nn.Linear(width, width),
                    "up": nn.Linear(width, 2 * width),
                    "down": nn.Linear(2 * width, width),
                }
            ).to(DEVICE)
            for _ in range(self.LAYERS)
        ]
        self.token = torch.randn(1, width, device=DEVICE)
        self.keys = torch.randn(8, width, device=DEVICE)
        self.values = torch.randn(8, width, device=DEVICE)

    def prepare(self) -> None:
        """Nothing but a step: it has no state."""
        self.step()
        synchronize()

    @torch.no_grad()
    def step(self) -> torch.Tensor:
        """The token behind the last layer."""
        x = self.token
        for layer in self.layers:
            query, _, _ = layer["inputs"](layer["norm"](x)).chunk(3, -1)
            attention = torch.softmax(query @ self.keys.transpose(0, 1), -1) @ self.values
            x = x + layer["output"](attention)
            x = x + layer["down"](torch.relu(layer["up"](layer["norm"](x))))
        return x

    def run(self, scope: Scope) -> None:
        """Tokens one after the other."""
        for _ in range(self.steps):
            with scope("token"):
                self.step()
        synchronize()


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "dynamic_net": DynamicNet,
    "tiny_triton": TinyTriton,
    "gpt2_small": Gpt2Step,
    "graph_replay": GraphReplay,
    "decode": Decode,
}
