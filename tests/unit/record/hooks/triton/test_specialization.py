from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.record.hooks.triton.specialization import Specialization, element_type, short_names, specialized_name

ALIGNED = ["tt.divisibility", 16]
MATMUL = Specialization(
    parameters=["a", "b", "c", "M", "stride_ak", "stride_am", "BLOCK_M", "BLOCK_N", "BLOCK_K"],
    declared=[6, 7, 8],
    types={(0,): "*bf16", (1,): "*bf16", (2,): "*bf16", (3,): "i32", (4,): "i32", (5,): "i32"},
    constants={(6,): 128, (7,): 256, (8,): 64},
    facts={(index,): [ALIGNED] for index in range(6)},
    warps=8,
    stages=3,
)


def inner(**changes: Any) -> str:
    """What stands between the brackets for a matrix product that differs in this."""
    name = specialized_name("matmul", MATMUL._replace(**changes))
    assert name.startswith("matmul<")
    assert name.endswith(">")
    return name.removeprefix("matmul<").removesuffix(">")


def test_a_usual_kernel_shows_constants_warps_stages_and_types() -> None:
    assert specialized_name("matmul", MATMUL) == "matmul<BM=128 BN=256 BK=64 w8 s3 bf16>"


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ({"cluster": (2, 1, 1)}, "c2x1x1"),
        ({"types": {**MATMUL.types, (2,): "*fp32"}}, "bf16*2 f32"),
        ({"types": {**MATMUL.types, (3,): "i64"}}, "M:i64"),
        ({"types": {**MATMUL.types, (3,): "u1"}}, "M:u1"),
        ({"facts": {**MATMUL.facts, (0,): [], (3,): []}}, "!16:a,M"),
        ({"constants": {**MATMUL.constants, (4,): 1, (5,): 1}}, "sak=sam=1"),
        ({"options": {"maxnreg": 64, "enable_fp_fusion": False}}, "enable_fp_fusion=False maxnreg=64"),
    ],
)
def test_what_differs_from_the_usual_is_said(changes: dict[str, Any], added: str) -> None:
    words = inner(**changes).split()
    at = words.index(added.split()[0])
    assert " ".join(words[at:]).startswith(added)
    assert len(words) <= len(inner().split()) + len(added.split())


def test_arguments_that_were_not_looked_at_are_not_called_unaligned() -> None:
    assert inner(facts={}) == inner()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (0.5, "0.5"),
        (None, "None"),
        ("relu", "relu"),
        ("64", "'64'"),
        ("", "''"),
        ((1, "a"), "(1,a)"),
        (short_names, "short_names"),
    ],
)
def test_a_constant_is_said_so_that_others_of_its_kind_are_not_meant(value: Any, text: str) -> None:
    assert inner(constants={(6,): value, (7,): 256, (8,): 64}).startswith(f"BM={text} ")


def test_a_long_constant_is_a_hash_that_depends_on_it() -> None:
    one, other = (inner(constants={(6,): "x" * 100 + end, (7,): 256, (8,): 64}) for end in "ab")
    assert re.match(r"BM=#[0-9a-f]{4} ", one)
    assert one != other


def test_a_name_that_would_be_too_long_is_cut_and_stays_unique() -> None:
    names = [f"parameter{index:02}" for index in range(30)]
    constants = {(index,): index for index in range(30)}
    kernel = MATMUL._replace(parameters=names, declared=range(30), types={}, constants=constants)
    name = specialized_name("k", kernel)
    assert len(name) < 140
    assert name != specialized_name("k", kernel._replace(constants={**constants, (29,): 0}))


def test_names_are_initials_where_no_other_name_may_be_meant() -> None:
    names = ["BLOCK_SIZE_M", "XBLOCK", "R0_BLOCK", "numWarps", "HEAD_DIM", "HIDDEN_DIM", "stride_ak", "stride_am"]
    assert short_names(names) == {
        "BLOCK_SIZE_M": "BSM",
        "XBLOCK": "XBLOCK",
        "R0_BLOCK": "R0B",
        "numWarps": "nW",
        "HEAD_DIM": "HEAD_DIM",
        "HIDDEN_DIM": "HIDDEN_DIM",
        "stride_ak": "sak",
        "stride_am": "sam",
    }


@given(st.lists(st.from_regex(r"[A-Za-z]{1,3}(_[A-Za-z0-9]{1,3}){0,2}", fullmatch=True), unique=True))
def test_short_names_are_unique_and_no_other_parameter_is_called_so(names: list[str]) -> None:
    short = short_names(names)
    assert len(set(short.values())) == len(names)
    assert all(text == name or text not in names for name, text in short.items())


@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("*fp16", "f16"),
        ("*kbf16", "bf16"),
        ("*fp8e4nv", "f8e4nv"),
        ("*i1", "i1"),
        ("tensordesc<fp16[128, 64]>", "f16[128x64]"),
        ("i32", ""),
    ],
)
def test_the_element_type_of_a_pointer_is_short(type_name: str, text: str) -> None:
    assert element_type(type_name) == text


VALUES = st.one_of(st.integers(-2, 2), st.booleans(), st.none(), st.sampled_from(["a", "1", "None"]))
POINTERS = st.sampled_from(["*fp16", "*fp32", None])
SCALARS = st.sampled_from(["i32", "i64", "u1", "fp32", "fp64", None])
ARGUMENTS = st.tuples(
    *(st.tuples(types, VALUES, st.booleans()) for types in (POINTERS, POINTERS, POINTERS, SCALARS, st.none()))
)


def kernel_of(arguments: Iterable[tuple[str | None, Any, bool]]) -> Specialization:
    """A specialization from (type or None for a constant, value, is aligned)."""
    arguments = list(arguments)
    return MATMUL._replace(
        parameters=["x", "y", "z", "n_rows", "BLOCK"],
        declared=[4],
        types={(row,): text for row, (text, _, _) in enumerate(arguments) if text},
        constants={(row,): value for row, (text, value, _) in enumerate(arguments) if not text},
        facts={
            (row,): [ALIGNED] if aligned else []
            for row, (text, _, aligned) in enumerate(arguments)
            if text and text[0] in "*i"
        },
    )


@given(ARGUMENTS, ARGUMENTS)
def test_different_specializations_have_different_names(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    kernels = kernel_of(one), kernel_of(other)
    # repr: True and 1 are equal in Python, and not to a compiler.
    same = repr(kernels[0]) == repr(kernels[1])
    assert (specialized_name("k", kernels[0]) == specialized_name("k", kernels[1])) == same
