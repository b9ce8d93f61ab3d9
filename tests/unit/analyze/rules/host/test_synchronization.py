"""Waits that no operator makes, as a recording without a timeline shows them: their scopes are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Metric, MetricKind, Profile
from tests.support.recordings import without_timeline
from tests.support.stepped import stepped

WAIT = "train.py:9@main > torch.cuda.synchronize#scope"
INSIDE = f"{WAIT} > /lib/python3.12/site-packages/torch/cuda/__init__.py:1040@synchronize"
LAUNCHES = "\n".join(
    f"host {at}-{at + 5} train.py:7@main > aten::mm#operator ->{at + 1}\n"
    f"gpu {at + 10}-{at + 35} train.py:7@main > aten::mm#operator > gemm#kernel <-{at + 1}"
    for at in range(0, 210, 30)
)
# Seven products are launched until 185, of which the last ends at 215.
N_STEPS = 20


def summed(wait: str) -> Profile:
    """The program without its timeline; scopes are entered once a step."""
    profile = without_timeline(stepped(f"{LAUNCHES}\n{wait}", 260))
    tree = profile.tree
    scopes = np.isin([tree.label(node) for node in range(len(tree))], ["torch.cuda.synchronize"])
    count = Metric("host_count", "1", MetricKind.EXCLUSIVE, np.where(scopes, N_STEPS, 0))
    return replace(profile, metrics={**profile.metrics, "host_count": count})


def found(wait: str) -> list[Finding]:
    return analysis(Evidence(summed(wait)), ["synchronization"]).findings


@pytest.mark.parametrize("wait", [f"host 187-255 {WAIT}", f"host 187-255 {INSIDE}"], ids=["own time", "sampled"])
def test_a_wait_in_each_step_is_named_though_its_time_is_that_of_what_it_calls(wait: str) -> None:
    (finding,) = found(wait)
    assert finding.message.startswith("the host waits for the GPU (torch.cuda.synchronize), 20 in all: 1.")
    assert finding.hint == "no torch.cuda.synchronize() in the step; time it with events, and read them later"
    assert (finding.file, finding.line) == ("train.py", 9)
    assert finding.evidence[0].value == N_STEPS
    assert finding.gain is not None
    assert 0 < finding.gain.share < 46 / 260  # 45 us of each step, in a curve that ends with the run


def test_a_call_that_finds_nothing_to_wait_for_is_fine() -> None:
    assert found(f"host 219-225 {WAIT}") == []


def copying(host_us: int, *, is_summed: bool) -> Profile:
    """A program that copies a number to the GPU in each step, behind 175 us of products: the call takes so long."""
    line = "train.py:9@main > aten::to#operator > aten::copy_#operator"
    end = 187 + host_us
    copy = f"host 187-{end} {line} ->99\ngpu {end}-{end + 2} {line} > copy HtoD#memory <-99 bytes=4"
    profile = stepped(f"{LAUNCHES}\n{copy}", 300)
    if not is_summed:
        return profile
    tree = profile.tree
    copies = np.array([tree.label(node) == "aten::copy_" for node in range(len(tree))])
    count = Metric("host_count", "1", MetricKind.EXCLUSIVE, np.where(copies, N_STEPS, 0))
    return replace(without_timeline(profile), metrics={**without_timeline(profile).metrics, "host_count": count})


@pytest.mark.parametrize("is_summed", [False, True], ids=["timeline", "sums"])
def test_a_small_copy_to_the_gpu_that_returns_when_its_queue_is_empty_is_a_wait(is_summed: bool) -> None:
    (finding,) = analysis(Evidence(copying(80, is_summed=is_summed)), ["synchronization"]).findings
    assert finding.message.startswith("the host waits for the GPU (aten::copy_), ")
    assert (finding.file, finding.line) == ("train.py", 9)
    assert analysis(Evidence(copying(30, is_summed=is_summed)), ["synchronization"]).findings == []


def test_blocking_on_arrays_of_jax_is_found_by_its_samples() -> None:
    wait = "train.py:9@main > /site-packages/jax/_src/api.py:2512@block_until_ready"
    launches = LAUNCHES.replace("aten::mm#operator", "jit(step)#operator")
    profile = without_timeline(stepped(f"{launches}\nhost 187-255 {wait}", 260))
    tree = profile.tree
    seen = np.array([tree.label(node).endswith("@block_until_ready") for node in range(len(tree))])
    samples = Metric("samples", "1", MetricKind.EXCLUSIVE, np.where(seen, N_STEPS, 0))
    (finding,) = analysis(
        Evidence(replace(profile, metrics={**profile.metrics, "samples": samples})), ["synchronization"]
    ).findings
    assert finding.line == 9
    assert finding.hint.startswith("no block_until_ready() in the step")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("while state[3].item() > goal:", "read what ends the loop every 10 or 100 turns"),
        ("if state[3].item() < goal: break", "read what ends the loop every 10 or 100 turns"),
        ("losses.append(loss.item())", "read results less often"),
        ("if loss.item() > worst: save(state)", "read results less often"),
    ],
)
def test_what_ends_a_loop_is_read_less_often(line: str, hint: str) -> None:
    wait = "train.py:2@main > aten::item#operator > aten::_local_scalar_dense#operator > cudaStreamSynchronize#gpu_api"
    profile = stepped(f"{LAUNCHES}\nhost 187-255 {wait}", 260)
    text = f"for _ in turns:\n    {line}{' pass' if line.endswith(':') else ''}\n"
    (finding,) = analysis(Evidence(replace(profile, sources={"train.py": text})), ["synchronization"]).findings
    assert (finding.line, finding.hint[: len(hint)]) == (2, hint)


def test_a_loop_of_jax_that_ends_by_a_value_on_the_gpu_belongs_into_a_jitted_function() -> None:
    read = "train.py:1@main > /lib/python3.12/site-packages/jax/_src/array.py:647@ArrayImpl._value"
    profile = without_timeline(stepped(f"{LAUNCHES}\nhost 187-255 {read}\ngpu 216-217 copy DtoH#memory", 260))
    profile = replace(profile, sources={"train.py": "while float(state[3]) > goal:\n    state = step(state)\n"})
    (finding,) = analysis(Evidence(profile), ["synchronization"]).findings
    assert (finding.line, finding.hint[:19]) == (1, "jax.lax.while_loop ")
