"""What a program uses, so that advice speaks of that alone."""

from __future__ import annotations

from dataclasses import replace

from bragg.model import Finding, Profile

__all__ = ["in_its_words", "is_training"]

_TRAINER = "transformers/trainer.py"
# Options of the Trainer of Transformers for what programs with a loop of their own change there.
_OPTIONS_OF_TRAINER = {
    "many-launches": 'TrainingArguments(torch_compile=True, torch_compile_mode="reduce-overhead"); larger batches',
    "data-loading": "TrainingArguments(dataloader_num_workers=4, dataloader_persistent_workers=True), or more workers",
    "optimizer-loop": 'TrainingArguments(optim="adamw_torch_fused")',
}


def in_its_words(finding: Finding, profile: Profile) -> Finding:
    """A finding whose change is an option of the framework that runs the steps of the program."""
    change = _OPTIONS_OF_TRAINER.get(finding.rule)
    frames = profile.tree.frames
    is_trainer = change is not None and any(
        file.replace("\\", "/").endswith(_TRAINER) and name.startswith("Trainer.")
        for name, file in zip(frames.name, frames.file, strict=True)
    )
    return replace(finding, hint=change) if change and is_trainer else finding


def is_training(profile: Profile) -> bool:
    """Whether there are backward passes or steps of an optimizer."""
    return any(name == "[backward]" or name.startswith("Optimizer.step#") for name in profile.tree.frames.name)
