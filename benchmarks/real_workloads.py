"""Programs as people run them: models of transformers, timm and torch.compile with random weights, nothing downloaded.

Where there is no GPU they are small, so that the scripts can be tried out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional

import harness
from workloads import DEVICE, Block, Scope, synchronize

IS_GPU = DEVICE == "cuda"
DTYPE = torch.bfloat16 if IS_GPU else torch.float32
if not IS_GPU:
    torch.set_num_threads(1)  # small operators: threads would wait for each other


class Repeated:
    """Steps of one kind, a scope around each, as many as make a burst.

    Attributes:
        launches: Kernels of a burst; not known before it was recorded.
    """

    launches = 0
    warm_up = 2
    steps = 1

    def step(self) -> None:
        """One of them."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Compile and warm up."""
        for _ in range(self.warm_up):
            self.step()
        synchronize()

    def fill(self, burst_s: float) -> None:
        """Choose the number of steps."""
        self.prepare()
        while (seconds := harness.seconds(lambda: self.run(nullcontext))) < burst_s / 4:
            self.steps *= 2
        self.steps = max(1, round(burst_s / seconds * self.steps))

    def run(self, scope: Scope) -> None:
        """All steps."""
        for _ in range(self.steps):
            with scope("step"):
                self.step()
        synchronize()


class LlamaGenerate(Repeated):
    """Greedy decoding with the sizes of Llama 3.2 1B, one sequence: the host is the limit."""

    warm_up = 1

    def __init__(self, tokens: int = 16) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM

        sizes = (2048, 8192, 16, 32, 8) if IS_GPU else (64, 128, 8, 4, 2)
        hidden, inner, layers, heads, kv_heads = sizes
        config = LlamaConfig(
            vocab_size=32_000 if IS_GPU else 100,
            hidden_size=hidden,
            intermediate_size=inner,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            pad_token_id=0,
        )
        torch.manual_seed(0)
        with torch.device(DEVICE):
            self.model = LlamaForCausalLM(config).to(DTYPE).eval()
            self.prompt = torch.randint(1, config.vocab_size, (1, 64))
        self.tokens = tokens

    @torch.no_grad()
    def step(self) -> None:
        """So many tokens, whatever they are."""
        wanted = {"max_new_tokens": self.tokens, "min_new_tokens": self.tokens, "do_sample": False}
        self.model.generate(self.prompt, attention_mask=torch.ones_like(self.prompt), **wanted)


class Training(Repeated):
    """Steps of an optimizer.

    Attributes:
        model: What is trained.
    """

    model: nn.Module

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def loss(self) -> torch.Tensor:
        """Of one batch."""
        raise NotImplementedError

    def step(self) -> None:
        """Forward, backward, update."""
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=IS_GPU):
            loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


class TransformersGpt2(Training):
    """A training step of GPT-2 small as transformers has it."""

    def __init__(self) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config() if IS_GPU else GPT2Config(vocab_size=100, n_embd=64, n_layer=4, n_head=4)
        torch.manual_seed(0)
        super().__init__(GPT2LMHeadModel(config).to(DEVICE).train())
        self.tokens = torch.randint(config.vocab_size, (8, 512) if IS_GPU else (1, 16), device=DEVICE)

    def loss(self) -> torch.Tensor:
        """Of the next token."""
        loss: torch.Tensor = self.model(self.tokens, labels=self.tokens).loss
        return loss


class TimmResNet50(Training):
    """A training step of timm's ResNet-50 on images of 224 x 224."""

    def __init__(self) -> None:
        import timm

        torch.manual_seed(0)
        super().__init__(timm.create_model("resnet50", pretrained=False).to(DEVICE).train())
        batch, side = (32, 224) if IS_GPU else (1, 64)
        self.images = torch.randn(batch, 3, side, side, device=DEVICE)
        self.labels = torch.randint(1000, (batch,), device=DEVICE)

    def loss(self) -> torch.Tensor:
        """Of the class."""
        return functional.cross_entropy(self.model(self.images), self.labels)


class CompiledEncoder(Repeated):
    """Inference of twelve compiled transformer blocks."""

    def __init__(self) -> None:
        width, blocks, self.shape = (768, 12, (8, 512, 768)) if IS_GPU else (64, 2, (1, 16, 64))
        torch.manual_seed(0)
        with torch.device(DEVICE):
            self.model = torch.compile(nn.Sequential(*(Block(width, 4) for _ in range(blocks))).to(DTYPE).eval())
            self.x = torch.randn(self.shape, dtype=DTYPE)

    @torch.no_grad()
    def step(self) -> None:
        """One batch."""
        self.model(self.x)


REAL_WORKLOADS: dict[str, Callable[[], Repeated]] = {
    "llama_generate": LlamaGenerate,
    "gpt2_training": TransformersGpt2,
    "timm_resnet50": TimmResNet50,
    "compiled_encoder": CompiledEncoder,
}
