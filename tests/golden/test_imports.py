"""Files that other profilers wrote on a CPU: PyTorch 2.13's and JAX 0.10's profilers, py-spy 0.4.3.

Paths in them were shortened; nothing else was changed.
"""

from __future__ import annotations

from pathlib import Path

from bragg import formats
from bragg.model import FrameKind, Profile
from tests.support.profiles import tree_to_text

FOLDER = Path(__file__).parent / "imports"


def imported(name: str) -> Profile:
    profile = formats.load(FOLDER / name)
    profile.check()
    return profile


def path_to(profile: Profile, name: str) -> list[str]:
    """The labels above the first node of this name."""
    tree = profile.tree
    node = next(node for node in range(len(tree)) if tree.frames.name[tree.frame[node]] == name)
    return [tree.label(above) for above in tree.path(node)[1:-1]]


def test_operators_of_pytorch_are_below_modules_functions_and_annotations() -> None:
    profile = imported("kineto.json.gz")
    above = path_to(profile, "aten::addmm")
    assert above[:2] == ["train.py:9@<module>", "train.py:4@step"]
    assert [label for label in above if "/" not in label] == [
        "train.py:9@<module>",
        "train.py:4@step",
        "forward",
        "Sequential_0",
        "Linear_0",
        "<built-in function linear>",
        "aten::linear",
    ]
    assert profile.meta["recorder"] == "torch.profiler"
    assert profile.slices.start_ns.min() > 1_790_000_000_000_000_000


def test_host_time_of_pytorch_adds_up_to_what_the_threads_did() -> None:
    profile = imported("kineto.json.gz")
    tree, slices = profile.tree, profile.slices
    (row,) = [row for row in range(len(slices)) if tree.label(slices.node[row]) == "forward"]
    assert profile.inclusive("host_time")[slices.node[row]] == slices.duration_ns[row] == 566_035


def test_work_of_jax_is_below_the_function_that_was_called() -> None:
    profile = imported("jax.trace.json.gz")
    assert path_to(profile, "ParseArguments") == ["train step", "PjitFunction(step)", "PjitFunction(step)"]
    assert path_to(profile, "start_trace") == ["contextlib.py:132@__enter__", "profiler.py:307@trace"]
    assert profile.meta["recorder"] == "jax.profiler"


def test_samples_of_py_spy_are_the_same_stacks_in_both_of_its_formats() -> None:
    stacks = ["w.py:7@<module>", "w.py:6@outer", "w.py:3@inner"]
    for name in ("py-spy.chrome.json", "py-spy.speedscope.json"):
        assert path_to(imported(name), "inner.<locals>.<genexpr>") == stacks
    profile = imported("py-spy.speedscope.json")
    assert tree_to_text(profile).splitlines()[-1].strip() == "w.py:3@inner.<locals>.<genexpr> host=660ms"
    assert profile.total("host_time") == profile.slices.duration_ns[0] == 1_000_000_000


def test_memory_of_jax_is_below_the_line_that_allocated_it() -> None:
    profile = imported("jax-memory.pprof")
    assert (profile.metrics["space"].unit, profile.metrics["allocations"].unit) == ("B", "1")
    assert profile.total("allocations") == 5
    tree = profile.tree
    assert {tree.label(int(node)) for node in tree.children(0)} == {"jx.py:5@<module>", "jx.py:6@<module>"}
    assert set(tree.kind[1:].tolist()) <= {FrameKind.PYTHON, FrameKind.NATIVE}
