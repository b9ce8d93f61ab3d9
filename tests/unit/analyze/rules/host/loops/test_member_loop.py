"""Loops of Python that call a jitted function for members that need nothing of each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.stepped import stepped

MEMBERS = 20
PROGRAM = """\
def learn(params, x):
    return params

update = jax.jit(learn)

def round(params, x):
    for m in range(20):
        {call}
    return loss

for step in range(steps):
    round(params, x)
"""


def found(call: str, program: str = PROGRAM, members: int = MEMBERS, frame: str = "", shapes: int = 1) -> list[Finding]:
    """Findings in steps that make this call for each member: a dispatch of 40 us, 5 us of work."""
    line = next(number for number, text in enumerate(program.splitlines(), 1) if "{call}" in text)
    caller = "train.py:12@<module> > train.py:{}@round > jit({})#operator"
    calls = [(line, "learn")] * members + [(line + 1, "stack")]
    text = []
    for number, (at, name) in enumerate(calls):
        path, begin = caller.format(at, name), 50 * number
        path = path.replace("@round > ", f"@round > train.py:{at}@{frame} > ") if frame and at == line else path
        text.append(f"host {begin}-{begin + 40} {path} ->{number + 1}")
        text.append(f"gpu {begin + 42}-{begin + 47} {path} > fusion#kernel <-{number + 1}")
    profile = stepped("\n".join(text), 50 * len(calls) + 5)
    source = {"train.py": program.replace("{call}", call)}
    told = {f"compiled program {number}": f"inputs {number}" for number in range(shapes)}
    meta = {**profile.meta, "attributes": {"[compile] jit_learn": told}}
    return analysis(Evidence(replace(profile, sources=source, meta=meta)), ["calls-per-member"]).findings


@pytest.mark.parametrize(
    "call",
    [
        "params[m], loss = update(params[m], x)",
        "self.params[m], self.state[m], loss = update(self.params[m], self.state[m], keys[m], x)",
        "losses.append(update(params[m], x))",
        "self.params[m], self.loss = update(self.params[m], self.x)",
    ],
)
def test_members_that_are_updated_one_after_the_other_are_found(call: str) -> None:
    (finding,) = found(call)
    assert (finding.file, finding.line) == ("train.py", 8)
    assert finding.message.startswith("a loop calls jit(learn) for 20 members one after the other")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(41 / 50 * 19 / 20, abs=0.01)  # all waits but those of one call


@pytest.mark.parametrize(
    "call",
    [
        "params, loss = update(params, x[m])",  # steps, which follow each other
        "params[m], loss = update(params[m - 1], x)",
        "params[m], loss = update(params, m)",
        "params[m], loss = update(params[m], loss)",
        "params[0], loss = update(params[0], x[m])",
        "self.params, loss = update(self.params, x[m])",
        "params[m], loss = update(x, x)",
        "losses.append(update(losses, x[m]))",
    ],
)
def test_turns_that_need_each_other_or_are_of_no_member_are_fine(call: str) -> None:
    assert found(call) == []


def test_few_members_and_loops_that_run_once_are_fine() -> None:
    call = "params[m], loss = update(params[m], x)"
    assert found(call, members=4) == []
    assert found(call, PROGRAM.replace("for step in range(steps):", "if True:")) == []
    assert found(call, PROGRAM.replace("def learn", "def other")) == []


COMPREHENDED = PROGRAM.replace("    for m in range(20):\n        {call}", "    if True:\n        {call}")


@pytest.mark.parametrize("frame", ["", "<listcomp>"])
@pytest.mark.parametrize(
    "call",
    [
        "params = [update(each, x) for each in params]",
        "losses = jnp.stack([update(each, rows)[1] for each, rows in zip(params, x)])",
        "loss = sum(update(each, x) for each in params)",
    ],
)
def test_comprehensions_over_members_are_found(call: str, frame: str) -> None:
    (finding,) = found(call, COMPREHENDED, frame=frame)
    assert (finding.file, finding.line) == ("train.py", 8)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(41 / 50 * 19 / 20, abs=0.01)


@pytest.mark.parametrize(
    "call", ["params = [(params := update(params, each)) for each in x]", "params = [update(x, params) for _ in x]"]
)
def test_comprehensions_that_are_of_no_member_or_hand_something_on_are_fine(call: str) -> None:
    assert found(call, COMPREHENDED) == []


def test_members_of_many_shapes_are_fine() -> None:
    call = "params = [update(each, x) for each in params]"
    assert found(call, COMPREHENDED, shapes=2) != []
    assert found(call, COMPREHENDED, shapes=3) == []
    assert found("params[m], loss = update(params[m], x)", shapes=3) == []
    assert found(call, COMPREHENDED.replace("for step in range(steps):", "if True:")) == []
