"""Shapes and types of the tensors of real PyTorch's operators, on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bragg.model import FrameKind
from bragg.model.kernels.names import operator_name
from tests.support.runs import Recorder, names_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

PROGRAM = """
    import torch

    x, w = torch.ones(4, 8, requires_grad=True), torch.ones(8, 2)
    (x @ w).sum().backward()
    torch.cat([torch.ones(2), torch.ones(3)])
    torch.ones(3, dtype=torch.int64).mul_(torch.tensor(2))
    torch.nn.functional.relu(torch.ones(1, 0, dtype=torch.bfloat16))
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) + 1
    torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2)) @ torch.ones(2, 2)
    with torch.profiler.record_function("a, [b], sizes = [[1"):
        torch.ones([1] * 20).abs()
    torch.block_diag(*(torch.ones(1) for _ in range(20_000)))
"""


def test_operators_are_told_with_their_tensors(tmp_path: Path) -> None:
    profile = Recorder(tmp_path).program(PROGRAM, shapes=True, context="shadow", sample_interval_us=0).main
    names = names_of(profile, FrameKind.OPERATOR)
    assert {
        "aten::mm[4x8 f32, 8x2 f32]",
        "aten::cat",
        "aten::mul_[3 i64, () i64]",
        "aten::relu[1x0 bf16]",
        "aten::abs[1x1x1x1x1x1x1x1x... f32]",
        "a, [b], sizes = [[1",
    } <= names
    assert max(map(len, names)) < 300
    (node,) = (node for node in range(len(profile.tree)) if profile.tree.label(node) == "MmBackward0")
    path = [profile.tree.label(above) for above in profile.tree.path(node)[1:]]
    assert path == ["aten::matmul[4x8 f32, 8x2 f32]", "aten::mm[4x8 f32, 8x2 f32]", "[backward]", "MmBackward0"]
    assert {operator_name(name) for name in names if name.startswith("aten::mm[")} == {"aten::mm"}


def test_operators_tell_which_operators_made_their_inputs(tmp_path: Path) -> None:
    program = """
        import torch

        def step(x, w):
            y = torch.relu(x @ w)
            one, other = torch.cat([y, y.sin()]).contiguous().split(4)
            (one + other).sum().backward()

        x, w = torch.ones(4, 8, requires_grad=True), torch.ones(8, 2)
        for _ in range(3):
            step(x, w)
        compiled = torch.compile(torch.neg, backend="eager")
        compiled(x.detach()).exp()
    """
    profile = Recorder(tmp_path).program(program, shapes=True, context="shadow", sample_interval_us=0).main
    inputs, label = profile.inputs, lambda node: operator_name(profile.tree.label(node))
    made = {
        (label(node), number, label(producer), output): count
        for node, number, producer, output, count in zip(
            *(getattr(inputs, name).tolist() for name in inputs.columns()), strict=True
        )
    }
    expected = {
        ("aten::relu", 0, "aten::matmul", 0),
        ("aten::sin", 0, "aten::relu", 0),
        ("aten::cat", 0, "aten::relu", 0),
        ("aten::cat", 0, "aten::sin", 0),
        ("aten::split", 0, "aten::cat", 0),
        ("aten::add", 0, "aten::split", 0),
        ("aten::add", 1, "aten::split", 1),
        ("aten::threshold_backward", 0, "aten::add", 0),
    }
    assert {edge: made.get(edge) for edge in expected} == dict.fromkeys(expected, 3)
    assert ("aten::mm", 0, "aten::ones", 0) in made
    assert not any(node == "aten::exp" for node, *_ in made)  # What is compiled makes tensors without operators.


def test_shapes_are_told_where_they_are_asked_for_alone(tmp_path: Path) -> None:
    profile = Recorder(tmp_path).program("import torch\ntorch.ones(2).abs()", context="shadow").main
    names = names_of(profile, FrameKind.OPERATOR)
    assert "aten::abs" in names
    assert not len(profile.inputs)
    assert not any("[2" in name for name in names)
