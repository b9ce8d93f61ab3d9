"""Advice speaks of what a program uses."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.frameworks import in_its_words, is_training
from bragg.model import Finding, Severity
from tests.support.profiles import profile_from_text

TRAINER = "/env/lib/python3.12/site-packages/transformers/trainer.py:900@Trainer.train"


@pytest.mark.parametrize(
    ("rule", "caller", "hint"),
    [
        ("optimizer-loop", TRAINER, 'TrainingArguments(optim="adamw_torch_fused")'),
        ("optimizer-loop", "train.py:900@Trainer.train", "fused=True"),  # a class of the program's own
        ("cpu-work", TRAINER, "fused=True"),
    ],
)
def test_a_change_in_the_loop_of_the_trainer_is_an_option_of_it(rule: str, caller: str, hint: str) -> None:
    profile = profile_from_text(f"root\n  train.py:33@<module>\n    {caller} host=1ms")
    assert in_its_words(Finding(rule, Severity.WARNING, "slow", "fused=True"), profile).hint == hint


@pytest.mark.parametrize(("frame", "trains"), [("Optimizer.step#AdamW.step", True), ("generate", False)])
def test_programs_with_an_optimizer_train(frame: str, trains: bool) -> None:
    assert is_training(profile_from_text(f"root\n  {frame} host=1ms")) is trains
