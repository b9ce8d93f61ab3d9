"""Rows of tables that are looked up by products, or whose gradients are as large as the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped

LOOKUP = "train.py:8@embed"
ONE_HOT = f"{LOOKUP} > aten::one_hot#operator"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>>"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"
OTHER = "train.py:9@layer > aten::mm#operator > sm90_xmma_gemm_bf16#kernel"
DENSE = "train.py:12@main > EmbeddingBackward0#operator > aten::embedding_dense_backward#operator"
ZEROS = f"{DENSE} > aten::zeros#operator > {FILL}#kernel"


def found(profile: Profile, rule: str) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings


def ran(*works: tuple[int, str], step_us: int = 1000) -> Profile:
    """Work of these durations in us, one after the other, from 100 us on; all of it is launched before."""
    lines, at = ["host 0-90 train.py:2@main"], 100
    for lasts, path in works:
        lines.append(f"gpu {at}-{at + lasts} {path}")
        at += lasts
    return stepped("\n".join(lines), step_us)


def test_a_product_with_one_hot_rows_is_found_with_what_makes_them() -> None:
    program = ran(
        (100, f"{ONE_HOT} > aten::zeros#operator > {FILL}#kernel"),
        (20, f"{ONE_HOT} > aten::scatter_#operator > scatter#kernel"),
        (80, f"{LOOKUP} > aten::to#operator > aten::copy_#operator > {CAST}#kernel"),
        (200, f"{LOOKUP} > aten::matmul#operator > aten::mm#operator > sm90_xmma_gemm_f32#kernel"),
        (300, OTHER),
    )
    (finding,) = found(program, "one-hot")
    assert (finding.file, finding.line) == ("train.py", 8)
    assert "57 % of the GPU time" in finding.message  # 400 of 700 us
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.4, abs=0.01)


def test_one_hot_rows_of_jax_are_found_at_the_line_of_the_product() -> None:
    call = "train.py:20@main > jit(step)#operator"
    program = ran(
        (100, f"{call} > _one_hot > convert_element_type#operator > loop_convert_fusion#kernel"),
        (400, f"{call} > dot_general#operator > gemm_fusion_dot_general_1#kernel"),
    )
    (finding,) = found(program, "one-hot")
    assert finding.line == 20


@pytest.mark.parametrize(
    "lookup",
    [
        f"{LOOKUP} > aten::embedding#operator > aten::index_select#operator > indexSelectLargeIndex#kernel",
        # A mask of few experts, beside what they compute.
        f"{ONE_HOT} > aten::scatter_#operator > scatter#kernel",
    ],
)
def test_rows_that_are_looked_up_are_fine(lookup: str) -> None:
    assert found(ran((10, lookup), (600, OTHER)), "one-hot") == []


def test_a_gradient_of_a_large_table_is_found_with_the_update_of_all_its_rows() -> None:
    update = "train.py:13@main > Optimizer.step#Adam.step#operator > multi_tensor_apply_kernel<Adam>#kernel"
    program = ran((50, ZEROS), (10, f"{DENSE} > embedding_backward_feature_kernel#kernel"), (400, update), (200, OTHER))
    (finding,) = found(program, "dense-embedding-gradient")
    assert finding.line == 12
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.42, abs=0.01)  # 60 us of the gradient, 7 x 50 us of the optimizer


def test_the_update_gains_no_more_than_the_optimizer_takes() -> None:
    update = "train.py:13@main > Optimizer.step#SGD.step#operator > multi_tensor_apply_kernel<Sgd>#kernel"
    (finding,) = found(ran((100, ZEROS), (90, update), (200, OTHER)), "dense-embedding-gradient")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.19, abs=0.01)


def test_a_gradient_of_most_rows_is_fine() -> None:
    program = ran((50, ZEROS), (120, f"{DENSE} > embedding_backward_kernel#kernel"), (200, OTHER))
    assert found(program, "dense-embedding-gradient") == []


@pytest.mark.parametrize(("layer", "line"), [("nn.EmbeddingBag(9, 9)", 3), ("make(9)", 12)])
def test_a_dense_gradient_is_said_where_the_layer_is_made_whose_gradient_it_is(layer: str, line: int) -> None:
    text = "class Net:\n  def __init__(self):\n    self.table = {}\n  def f(self, x):\n{}    return self.table(x)\n"
    program = replace(ran((100, ZEROS), (200, OTHER)), sources={"train.py": text.format(layer, "\n" * 7)})
    (finding,) = found(program, "dense-embedding-gradient")
    assert (finding.line, [each.line for each in finding.places]) == (line, [12] * (line != 12))


def test_two_tables_that_a_line_looks_up_are_both_named_where_they_are_made() -> None:
    made = "class Net:\n  def __init__(self):\n    self.user = nn.Embedding(9, 9)\n    self.item = nn.Embedding(9, 9)\n"
    text = made + "  def f(self, u, i):" + "\n" * 8 + "    return [self.user(u), self.item(i)]\n"
    (finding,) = found(replace(ran((100, ZEROS), (200, OTHER)), sources={"train.py": text}), "dense-embedding-gradient")
    assert (finding.line, [each.line for each in finding.places]) == (3, [12, 4])
