"""Advice speaks of what a program uses."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize(
    ("versions", "is_of_jax"), [({"jax": "0.11"}, True), ({"jax": "0.11", "torch": "2.11"}, False)]
)
def test_programs_of_jax_alone_are_told_nothing_of_pytorch(versions: dict[str, str], is_of_jax: bool) -> None:
    profile = replace(profile_from_text("root\n  main host=1ms"), meta={"versions": versions})
    finding = Finding("tf32-products", Severity.WARNING, "slow", "torch.autocast")
    assert ("dtype=jnp.bfloat16" in in_its_words(finding, profile).hint) is is_of_jax


def test_a_program_that_was_ended_is_known_by_the_functions_that_it_called() -> None:
    finding = Finding("operator-loop", Severity.WARNING, "slow", "torch._foreach_*")
    for frame, hint in (("jit(step)", "one jitted function for all of them"), ("aten::add", "torch._foreach_*")):
        assert in_its_words(finding, profile_from_text(f"root\n  {frame} host=1ms")).hint.startswith(hint)


@pytest.mark.parametrize(("frame", "trains"), [("Optimizer.step#AdamW.step", True), ("generate", False)])
def test_programs_with_an_optimizer_train(frame: str, trains: bool) -> None:
    assert is_training(profile_from_text(f"root\n  {frame} host=1ms")) is trains
