"""Loops of JAX, by the lines that their kernels come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.model import Profile
from tests.support.stepped import stepped
from tests.support.told_by_text import found

CALL = "train.py:20@main > jit(step)#operator"


def looped(statement: str, *work: str, us: int = 3) -> Profile:
    """A jitted function whose loop of 64 turns does some work at line 3, which is this statement."""
    text, at = f"host 0-10 {CALL}", 20
    for _ in range(64):
        for each in work:
            text += f"\ngpu {at}-{at + us} {CALL} > while#operator > {each}"
            at += us
    profile = stepped(text, at + 20)
    frames = profile.tree.frames
    for row, name in enumerate(frames.name):
        if name in ("dynamic_update_slice", "carried"):
            frames.file[row], frames.line[row] = "train.py", 3
    return replace(profile, sources={"train.py": f"def f(x, lines, i):\n    y = x\n    z = {statement}\n    return z"})


WRITE = "dynamic_update_index_in_dim#operator > dynamic_update_slice#operator > copy DtoD#memory"


@pytest.mark.parametrize(
    ("statement", "n_found"),
    [
        ("jax.lax.scan(body, x, rows)", 1),
        ("layers(x)", 1),  # a scan that has a name
        ("jax.lax.dynamic_update_index_in_dim(lines, x, i % 9, 0)", 0),  # a ring buffer that the loop carries
        ("lines.at[i % 9].set(x)", 0),
    ],
)
def test_what_a_program_itself_writes_in_a_turn_is_no_output_of_the_loop(statement: str, n_found: int) -> None:
    assert [each.line for each in found("loop-outputs", looped(statement, WRITE, us=30))] == [3] * n_found


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("jax.lax.scan(body, x, rows)", "jax.vmap (or lax.map with batch_size) if turns do not need each other"),
        ("jax.lax.fori_loop(0, 64, body, x)", "jax.vmap if turns do not need each other; else fori_loop(unroll=...)"),
        ("jax.lax.while_loop(goes_on, body, x)", "several iterations in each turn (jax.lax.fori_loop in its body)"),
    ],
)
def test_a_loop_of_short_turns_is_found_at_its_line_with_what_its_kind_can_do(statement: str, hint: str) -> None:
    profile = looped(statement, "sin#operator > loop_fusion#kernel", "carried#operator > copy DtoD#memory")
    (finding,) = found("short-turns", profile)
    assert (finding.line, finding.hint[: len(hint)]) == (3, hint)


@pytest.mark.parametrize(
    ("copied", "is_read"), [("copy DtoH#memory", True), ("carried#operator > copy DtoH#memory", False)]
)
def test_a_condition_that_the_host_reads_after_each_turn_is_named(copied: str, is_read: bool) -> None:
    profile = looped("jax.lax.while_loop(goes_on, body, x)", "sin#operator > loop_fusion#kernel", copied)
    (finding,) = found("short-turns", profile)
    assert ("the host reads after each whether it is the last" in finding.message) == is_read


def test_a_linear_recurrence_of_short_turns_gains_nearly_all_of_its_loop() -> None:
    profile = looped("jax.lax.scan(body, x, rows)", "[linear recurrence]#state > sin#operator > loop_fusion#kernel")
    frames = profile.tree.frames
    at = frames.name.index("[linear recurrence]")
    frames.file[at], frames.line[at] = "train.py", 3
    (finding,) = found("linear-recurrence", profile)
    assert finding.line == 3
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.98 * 192 / 232, abs=0.06)
    assert found("short-turns", profile) == []
    long = looped("scan", "[linear recurrence]#state > sin#operator > loop_fusion#kernel", us=500)
    assert found("linear-recurrence", long) == []
