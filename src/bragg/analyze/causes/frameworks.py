"""What a program uses, so that advice speaks of that alone."""

from __future__ import annotations

from dataclasses import replace

from bragg.grouping.hlo_names import CALLS
from bragg.model import Finding, Profile

_TRAINER = "transformers/trainer.py"
# Options of the Trainer of Transformers for what programs with a loop of their own change there.
_OPTIONS_OF_TRAINER = {
    "many-launches": 'TrainingArguments(torch_compile=True, torch_compile_mode="reduce-overhead"); larger batches',
    "data-loading": "TrainingArguments(dataloader_num_workers=4, dataloader_persistent_workers=True), or more workers",
    "optimizer-loop": 'TrainingArguments(optim="adamw_torch_fused")',
}
# What programs of JAX alone change where advice names PyTorch.
_IN_JAX = {
    "tf32-products": "modules and arrays in bfloat16 (Flax: dtype=jnp.bfloat16), if the precision is enough: twice the "
    "speed of TF32, and half of the bytes",
    "full-precision-matmul": 'no precision="highest", or modules and arrays in bfloat16, if the precision is enough',
    "unfused-attention": 'jax.nn.dot_product_attention(implementation="cudnn") in bfloat16 or float16, with is_causal '
    "instead of a mask",
    "many-launches": "put the whole step into one jax.jit, or several steps into jax.lax.scan",
    "operator-loop": "one jitted function for all of them (Optax: update and apply_updates in the jitted step), or "
    "jax.vmap over what has one shape",
}


def in_its_words(finding: Finding, profile: Profile) -> Finding:
    """A finding whose change is one of the framework that runs the program."""
    if uses_jax_alone(profile):
        return replace(finding, hint=_IN_JAX.get(finding.rule, finding.hint))
    change = _OPTIONS_OF_TRAINER.get(finding.rule)
    frames = profile.tree.frames
    is_trainer = change is not None and any(
        file.replace("\\", "/").endswith(_TRAINER) and name.startswith("Trainer.")
        for name, file in zip(frames.name, frames.file, strict=True)
    )
    return replace(finding, hint=change) if change and is_trainer else finding


def uses_jax_alone(profile: Profile) -> bool:
    """Whether JAX runs the program; of one that was ended, its versions are not known."""
    versions = profile.run.versions
    if "jax" in versions or "torch" in versions:
        return "torch" not in versions
    return any(name.startswith(CALLS) for name in profile.tree.frames.name)


def is_training(profile: Profile) -> bool:
    """Whether there are backward passes or steps of an optimizer."""
    return any(name == "[backward]" or name.startswith("Optimizer.step#") for name in profile.tree.frames.name)
