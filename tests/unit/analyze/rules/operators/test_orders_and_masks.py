"""Products whose order decides what they compute, and attention that a mask slows down."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped

CALL = "train.py:20@main > /x/site-packages/torch/nn/modules/module.py:3@_call > net.py:{}@forward > aten::{}#operator"


def ran(*calls: tuple[str, int]) -> Profile:
    """Operators of 2 us on the host, each with a kernel that lasts so many us if it has one."""
    lines, at = [], 0
    for path, lasts in calls:
        lines.append(f"host {at}-{at + 2} {path} ->{at + 1}")
        lines += [f"gpu {at + 3}-{at + 3 + lasts} {path} > kernel#kernel <-{at + 1}"] if lasts else []
        at += lasts + 5
    return stepped("\n".join(lines), at + 20)


def found(rule: str, profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings


PRODUCT, NEXT, REST = (CALL.format(7, "matmul"), 200), (CALL.format(8, "bmm"), 200), (CALL.format(12, "add"), 100)


@pytest.mark.parametrize(
    ("calls", "n_found"),
    [
        ([PRODUCT, PRODUCT, REST], 1),
        ([PRODUCT, NEXT, REST], 1),
        ([PRODUCT, REST], 0),
        ([PRODUCT, (CALL.format(8, "relu"), 5), NEXT, REST], 0),  # a layer and the next
        ([PRODUCT, PRODUCT, REST, REST], 0),  # of a function that is called twice
        ([PRODUCT, PRODUCT, (REST[0], 2000)], 0),
    ],
)
def test_products_of_three_matrices_are_found_if_they_are_long(calls: list[tuple[str, int]], n_found: int) -> None:
    assert [each.line for each in found("product-order", ran(*calls))] == [7] * n_found


ATTENTION = CALL.format(9, "scaled_dot_product_attention")
ATTENDS = (f"{ATTENTION} > aten::_scaled_dot_product_cudnn_attention#operator", 200)
WRITES, CUTS = (f"{ATTENTION} > aten::where#operator", 10), (CALL.format(8, "tril"), 10)


@pytest.mark.parametrize(("calls", "n_found"), [([WRITES, ATTENDS], 1), ([ATTENDS], 0), ([CUTS, WRITES, ATTENDS], 0)])
def test_attention_with_a_mask_of_bools_is_found(calls: list[tuple[str, int]], n_found: int) -> None:
    assert [each.line for each in found("masked-attention", ran(*calls, REST))] == [9] * n_found


MAKES = (CALL.format(7, "diag") + " > aten::diag_embed#operator", 10)
TAKES = (CALL.format(7, "diag"), 10)


@pytest.mark.parametrize(("diagonal", "rule"), [(MAKES, "diagonal-product"), (TAKES, "part-of-product")])
def test_products_beside_a_diagonal_are_told_apart(diagonal: tuple[str, int], rule: str) -> None:
    profile = ran(diagonal, PRODUCT, REST)
    rules = ("diagonal-product", "part-of-product")
    assert [each for each in rules if found(each, profile)] == [rule]


LAYER, GATHERS = (CALL.format(7, "linear"), 200), CALL.format(6, "index_select")


@pytest.mark.parametrize(
    ("calls", "n_found"),
    [
        ([(GATHERS, 20), LAYER, REST], 1),
        ([(GATHERS.replace(":6@", ":8@"), 20), LAYER, REST], 0),  # of what the layer computed
        ([(GATHERS, 20), LAYER, (REST[0], 2000)], 0),
    ],
)
def test_layers_of_gathered_rows_are_found_if_they_are_long(calls: list[tuple[str, int]], n_found: int) -> None:
    assert [each.line for each in found("late-product", ran(*calls))] == [7] * n_found


def test_rows_that_a_mask_chose_are_multiplied_once() -> None:
    chooses = (CALL.format(7, "index") + " > aten::nonzero#operator", 5)
    assert found("late-product", ran((CALL.format(7, "index"), 20), chooses, (CALL.format(8, "linear"), 200))) == []
