"""Checkpoints are found where the program writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped


def found(text: str) -> list[Finding]:
    """Of a program whose line 20 calls a jitted function, which computes line 4 again."""
    call = "train.py:20@main > jit(step)#operator"
    profile = stepped(
        f"host 0-10 {call}\ngpu 20-420 {call} > [recompute]#state > dot_general#operator > gemm#kernel", 500
    )
    frames = profile.tree.frames
    frames.file[frames.name.index("dot_general")], frames.line[frames.name.index("dot_general")] = "train.py", 4
    return analysis(Evidence(replace(profile, sources={"train.py": text})), ["recomputed-activations"]).findings


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import jax\n\nforward = jax.checkpoint(model.apply)", [3]),
        (
            "import flax.linen as nn\nimport jax\nblock = nn.remat(Block) if c.saves else Block\n\n\nf = jax.remat(g)",
            [3, 6],
        ),
        (
            "import jax\n@partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)\ndef f(x):\n  return x",
            [2],
        ),
        ("import jax\n@jax.checkpoint\ndef f(x):\n  return x", [2]),
        ("from torch.utils.checkpoint import checkpoint as again\ndef f(x):\n  return again(layer, x)", [3]),
        ("from torch.utils import checkpoint\n\nx = checkpoint.checkpoint(layer, x)", [3]),
        ("\nmodel.gradient_checkpointing_enable()", [2]),
        ("from store import checkpoint\n\ncheckpoint(model, 'model.npz')\nstore.checkpoint(model)", []),
        ("", []),
    ],
)
def test_recomputed_activations_are_found_where_the_checkpoint_is_written(text: str, lines: list[int]) -> None:
    (finding,) = found(text)
    places = [(each.file, each.line) for each in (finding, *finding.places)]
    assert places[: len(lines) + 1] == [("train.py", each) for each in (*lines[:1], 4, *lines[1:])]
