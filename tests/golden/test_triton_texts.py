"""Facts of compiled kernels are the same whichever version of Triton wrote the texts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bragg.code.compiled.facts import facts_of
from bragg.code.source_map import KernelCode, Stage
from bragg.model.kernels.compiled import CompiledKernel, TensorCores

FILES = sorted((Path(__file__).parent / "triton").glob("*.json.gz"))
every_version = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))


def kernel(file: Path, name: str) -> CompiledKernel:
    texts = json.loads(gzip.decompress(file.read_bytes()))
    found = {Stage(key.rpartition(".")[2]): text for key, text in texts.items() if key.startswith(f"{name}.")}
    assert len(found) == 3
    facts = facts_of(KernelCode(f"{name}/0123abcd", found), {})
    assert facts.unread == {}
    return facts


def test_all_supported_versions_are_there() -> None:
    assert [file.name.removesuffix(".json.gz") for file in FILES] == ["3.4", "3.5", "3.6", "3.7", "3.8", "3.9"]


@every_version
def test_a_narrow_access_and_its_cause(file: Path) -> None:
    facts = kernel(file, "scale")
    # Triton 3.4 leaves out the names of arguments.
    cause = ("arg2",) if file.name.startswith("3.4") else ("n",)
    assert [
        (each.is_store, each.strides, each.intended_bytes, each.compiled_bytes, each.of_mask, each.of_address)
        for each in facts.accesses or ()
    ] == [(False, ("1",), 16, 2, cause, ()), (True, ("1",), 16, 2, cause, ())]
    assert [each.place.file for each in facts.accesses or ()] == ["/home/me/slow_kernels.py"] * 2
    assert [each.divisibility for each in facts.arguments or ()] == [16, 16, 1, 1]
    assert facts.tensor_cores is TensorCores.NONE


@every_version
def test_a_product_with_its_pipeline(file: Path) -> None:
    facts = kernel(file, "product")
    assert (facts.target, facts.num_warps, facts.num_ctas) == ("cuda:90", 4, 1)
    assert [(dot.m, dot.n, dot.k, dot.operand, dot.in_loop) for dot in facts.dots or ()] == [(64, 64, 32, "f16", True)]
    assert [(loop.n_loads, loop.n_dots, loop.is_pipelined, loop.buffers) for loop in facts.loops or ()] == [
        (2, 1, True, 3)
    ]
    assert {each.compiled_bytes for each in facts.accesses or ()} == {16}
    assert facts.tensor_cores is TensorCores.WGMMA
    assert facts.conversions == ()


@every_version
def test_a_reduction_in_a_loop(file: Path) -> None:
    facts = kernel(file, "sum_in_loop")
    assert [
        (each.in_loop, each.elements, each.crosses_warps, each.is_only_carried) for each in facts.reductions or ()
    ] == [(True, 1024, True, True)]
