"""What people write by hand, or forget: repeated tensors, formulas in steps, training mode, products in TF32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.paths import below, named
from bragg.analyze.engine import analysis
from bragg.model import Finding, Metric, MetricKind, Profile
from tests.support.stepped import stepped

LINE = "train.py:8@f"
COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"
MODULE = "/x/torch/nn/modules/activation.py:3@ReLU.forward"


def ran(*calls: tuple[str, str]) -> Profile:
    """Calls of operators of 5 us, each with 50 us of a kernel if it has one, and a product of 50 us."""
    lines, at = [], 0
    for path, kernel in (*calls, ("train.py:20@main > aten::mm#operator", "sm90_gemm_bf16")):
        lines.append(f"host {at}-{at + 5} {path} ->{at + 1}")
        lines += [f"gpu {at + 10}-{at + 60} {path} > {kernel}#kernel <-{at + 1}"] if kernel else []
        at += 60
    return stepped("\n".join(lines), at + 20)


def found(rule: str, profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings


@pytest.mark.parametrize(
    ("calls", "n_found"),
    [
        ([(f"{LINE} > aten::repeat#operator", COPY)], 1),
        ([(f"{LINE} > aten::expand#operator", ""), ("train.py:9@f > aten::reshape#operator", COPY)], 1),
        ([(f"{LINE} > aten::expand#operator", ""), ("train.py:9@f > aten::reshape#operator", "")], 0),  # a view
        ([("train.py:9@f > aten::reshape#operator", COPY)], 0),
    ],
)
def test_copies_that_repeat_a_tensor_have_a_rule_of_their_own(calls: list[tuple[str, str]], n_found: int) -> None:
    profile = ran(*calls)
    repeated = found("repeated-tensor", profile)
    assert [each.line for each in repeated] == [int(calls[-1][0][9])] * n_found
    assert not (repeated and found("type-copies", profile))


@pytest.mark.parametrize(("n", "above", "n_found"), [(5, "", 1), (4, "", 0), (5, f" > {MODULE}", 0)])
def test_a_formula_in_steps_is_found_in_its_function_however_few_its_kernels_are(
    n: int, above: str, n_found: int
) -> None:
    calls = [(f"train.py:8@gelu{above} > aten::add{at}#operator", ADD) for at in range(n)]
    assert len(found("unfused-elementwise", ran(*calls))) == n_found


def test_dropout_without_a_backward_pass_is_found() -> None:
    drops = (f"{LINE} > aten::dropout#operator > aten::native_dropout#operator", "fused_dropout_kernel")
    (finding,) = found("training-mode", ran(drops))
    assert finding.line == 8
    assert found("training-mode", ran(drops, (f"{LINE} > MulBackward0#operator", ADD))) == []


def test_products_in_tf32_are_found_where_none_are_in_16_bits() -> None:
    product = (f"{LINE} > aten::linear#operator", TF32)
    (finding,) = found(
        "tf32-products", stepped(f"host 0-5 {product[0]} ->1\ngpu 9-90 {product[0]} > {TF32}#kernel <-1", 99)
    )
    assert finding.line == 8
    assert found("tf32-products", ran(product)) == []


def test_operators_that_checkpoints_run_again_are_recorded_twice_and_fine() -> None:
    again = "train.py:5@step > aten::mm#operator > [backward]#state > [recompute]#state > aten::mm#operator"
    profile = ran((again, ADD), ("train.py:12@validate > aten::mm#operator", ADD))
    inside = below(profile, named(profile, "[recompute]".__eq__)) & named(profile, "aten::mm".__eq__)
    calls = Metric("host_count", "1", MetricKind.EXCLUSIVE, np.where(inside, 1000, 0))
    for made, n_found in ((2000, 0), (3000, 1)):
        statistics = {"autograd_nodes": made, "evaluated_nodes": 1000}
        counted = replace(
            profile, meta={**profile.meta, "statistics": statistics}, metrics={**profile.metrics, "host_count": calls}
        )
        found_unused = found("unused-gradients", counted)
        assert [each.message.split(" operators")[0] for each in found_unused] == ["autograd recorded 1,000"] * n_found


def test_a_validation_that_records_for_no_backward_pass_is_found_beside_a_training_that_does() -> None:
    trains = ("train.py:5@step > aten::mm#operator > [backward]#state > MmBackward0#operator", ADD)
    profile = ran(trains, ("train.py:12@validate > aten::mm#operator", ADD))
    for made, ran_back, n_found in ((2000, 1000, 1), (1100, 1000, 0), (2000, 2000, 0)):
        counted = replace(
            profile, meta={**profile.meta, "statistics": {"autograd_nodes": made, "evaluated_nodes": ran_back}}
        )
        unused = found("unused-gradients", counted)
        assert [each.line for each in unused] == [12] * n_found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def forces(energy, x):\n  return autograd.grad(energy, x, create_graph=True)[0]", 2),
        ("def forces(energy, x):\n  return autograd.grad(energy, x, create_graph=False)[0]", 12),
        ("g = autograd.grad(energy, x, create_graph=True)[0]\ng.sum().backward()", 12),
        ("def d(y, x):\n  return grad(y, x, create_graph=True)[0]\nu = net(x)\nux = d(u, x)\nuxx = d(ux, x)", 12),
    ],
)
def test_a_graph_of_a_gradient_that_nothing_differentiates_is_told_where_it_is_asked_for(text: str, line: int) -> None:
    trains = ("train.py:5@step > aten::mm#operator > [backward]#state > MmBackward0#operator", ADD)
    profile = ran(trains, ("train.py:12@validate > aten::mm#operator", ADD))
    meta = {**profile.meta, "statistics": {"autograd_nodes": 2000, "evaluated_nodes": 1000}}
    (finding,) = found("unused-gradients", replace(profile, meta=meta, sources={"train.py": text}))
    assert (finding.line, "create_graph" in finding.hint) == (line, line == 2)


@pytest.mark.parametrize(("norm", "n_found"), [("two", 1), ("one", 0)])
def test_distances_of_pairs_that_a_product_gives_are_found(norm: str, n_found: int) -> None:
    kernel = f"_ZN2at6native18DistanceKernel_cu_22cdist_kernel_cuda_implIfNS1_5distsIfE3{norm}EEEvPT_"
    calls = [(f"{LINE} > aten::cdist#operator > aten::_cdist_forward#operator", kernel)]
    assert [each.line for each in found("cheaper-operator", ran(*calls))] == [8] * n_found
