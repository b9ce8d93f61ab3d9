"""Rules about operators in programs without a GPU: their gain is of the host's time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.profiles import profile_from_text
from tests.support.stepped import stepped

ATTENTION = """\
mask = torch.from_numpy(np.full((512, 512), -1e9))
w = torch.randn(256, 256)
def attend(x):
    q = x @ w
    s = q @ q.mT + mask
    p = s.softmax(-1)
    return (p @ x.double()).float()
"""
RAN = """\
root
  net.py:4@attend
    aten::matmul #operator host=10ms
  net.py:5@attend
    aten::matmul #operator host=20ms
    aten::add #operator
      aten::to #operator host=30ms
  net.py:6@attend
    aten::softmax #operator host=10ms
  net.py:7@attend
    aten::matmul #operator
      aten::bmm #operator host=30ms
"""
GENERATE = """\
def generate(model, ids):
    for _ in range(100):
        logits = model(ids)
        ids = torch.cat([ids, logits.argmax(-1)], 1)
"""
GENERATED = """\
root
  net.py:3@generate
    own.py:9@forward
      aten::mm #operator host=90ms
  net.py:4@generate
    aten::cat #operator host=10ms
"""


def found(rule: str, text: str, ran: str | Profile) -> list[Finding]:
    profile = profile_from_text(ran) if isinstance(ran, str) else ran
    return analysis(Evidence(replace(profile, sources={"net.py": text})), [rule]).findings


def test_operators_are_of_64_bits_behind_the_line_where_numbers_of_numpy_meet_tensors() -> None:
    (finding,) = found("double-precision", ATTENTION, RAN)
    assert (finding.file, finding.line) == ("net.py", 5)
    assert ("net.py", 1) in [(place.file, place.line) for place in finding.places]
    assert finding.message == (
        "operators compute in 64-bit floating point, since numbers of NumPy meet tensors of 32 bits here, "
        "70 % of the host's time"
    )
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.35)


@pytest.mark.parametrize(
    "text",
    [
        ATTENTION.replace("1e9))", "1e9, np.float32))").replace(".double()", ""),
        ATTENTION.replace("1e9))", "1e9)).float()"),
        ATTENTION.replace("1e9))", "1e9)).float()").replace(".double()", ""),
        ATTENTION + "torch.set_default_dtype(torch.float64)\n",
        ATTENTION.replace("q.mT + mask", "q.mT"),
        ATTENTION.replace("torch.randn(256, 256)", "load('w')"),  # which may be of 64 bits
    ],
)
def test_a_program_without_64_bits_or_that_means_them_is_fine(text: str) -> None:
    assert found("double-precision", text, RAN) == []


@pytest.mark.parametrize(
    ("text", "is_judged"),
    [
        ("mask = torch.from_numpy(np.random.default_rng(0).normal(size=(9, 9)))", False),
        ("rng = np.random.default_rng(0)\nmask = torch.from_numpy(rng.standard_normal((9, 9)))", False),
        ("mask = torch.from_numpy(np.full((9, 9), -1e9))", False),
        ("mask = torch.from_numpy(np.full((9, 9), -1e9, np.float32))", True),
        ("mask = torch.from_numpy(np.full((9, 9), -1e9)); model = Net().double()", False),
    ],
)
def test_where_all_is_of_64_bits_nobody_says_that_nothing_is(text: str, is_judged: bool) -> None:
    program = f"{text}\ny = mask + mask"
    profile = profile_from_text(f"root\n  net.py:{len(program.splitlines())}@f\n    aten::add #operator host=9ms")
    profile = replace(profile, sources={"net.py": program})
    told = analysis(Evidence(profile), ["double-precision"])
    assert (told.findings, told.fine) == ([], ["double-precision"] * is_judged)


def test_without_the_text_nothing_is_said_of_64_bits() -> None:
    told = analysis(Evidence(profile_from_text(RAN)), ["double-precision"])
    assert (told.fine, list(told.skipped)) == ([], ["double-precision"])


def test_a_sequence_that_grows_and_is_read_from_its_beginning() -> None:
    (finding,) = found("whole-prefix", GENERATE, GENERATED)
    assert (finding.file, finding.line) == ("net.py", 3)
    assert finding.message == (
        "a loop that makes a sequence longer hands all of it to a network in each turn, 90 % of the host's time"
    )
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.8 * 0.9)


def test_a_cache_of_earlier_positions_or_little_time_is_fine() -> None:
    assert found("whole-prefix", GENERATE.replace("model(ids)", "model(ids, past=past)"), GENERATED) == []
    assert found("whole-prefix", GENERATE, GENERATED.replace("90ms", "2ms")) == []


def test_where_steps_are_known_the_gain_is_of_a_step() -> None:
    lines = "host 0-600 net.py:3@generate > aten::mm#operator\nhost 600-900 other.py:4@main > aten::add#operator"
    (finding,) = found("whole-prefix", GENERATE, stepped(lines, 1000))
    assert finding.message.endswith("in each turn, 0.6 ms a step")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.48, abs=0.01)


@pytest.mark.parametrize(("joined", "n_found"), [("kept, x", 1), ("x, x", 0)])
def test_a_tensor_that_grows_is_copied_by_the_host_too(joined: str, n_found: int) -> None:
    text = f"def run(n):\n  for _ in range(n):\n    kept = torch.cat([{joined}])\n"
    called = "root\n  net.py:3@run\n    aten::cat #operator host=60ms\n  net.py:2@run host=40ms"
    told = found("growing-tensor", text, called)
    assert [(each.line, each.gain and round(each.gain.share, 2)) for each in told] == [(3, 0.54)] * n_found
