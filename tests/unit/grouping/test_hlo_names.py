from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.grouping.hlo_names import path_of_name
from bragg.model import FrameKind

RANGES = Path(__file__).parents[2] / "golden" / "xla_ranges.tsv"
"""What JAX 0.11.2 pushed on an H200, and how it is shown."""


def path(name: str) -> str:
    return " > ".join(frame for _, frame in path_of_name(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jit(loss)/jvp(block0)/layer/dot_general", "block0 > layer > dot_general"),
        ("jit(loss)/transpose(jvp(block0))/layer/transpose", "block0 > layer > [backward] > transpose"),
        ("jit(f)/transpose(jvp(jit(f)))/layer1/transpose", "layer1 > [backward] > transpose"),
        ("jit(loss)/jvp()/div", "div"),
        ("jit(loss)/transpose(jvp())/mul;jit(loss)/jvp()/neg", "[backward] > mul"),
        ("jit(loss)/a;b/mul;jit(loss)/c/add", "a;b > mul"),
        ("args[0];args[1]", "args[0]"),
        ("jit(loss)/x[0](1/mul", "x[0](1 > mul"),
        ("jit(loss)/transpose(jvp(x[0](1))/y/mul", "x[0](1 > y > [backward] > mul"),
        ("jit(loss)/jvp(scan)/while", "scan > while"),
        ("jit(loss)/jvp(scan)/while/body/closed_call/cos", "scan > while > cos"),
        ("jit(loss)/jvp(scan)/while/body/eval_jaxpr", "scan > while"),
        ("jit(loss)/jvp(scan)/while/body", "scan > while"),
        ("jit(loss)/transpose(jvp(scan))/while/cond/lt", "scan > while > cond > [backward] > lt"),
        ("jit(zoo)/jvp(cond)/cond/branch_1_fun/mul", "cond > cond > branch_1_fun > mul"),
        ("jit(zoo)/transpose(jvp(jit(inner)))/mul", "inner > [backward] > mul"),
        ("jit(_normal)/jit(_normal_real)", "_normal_real"),
        ("jit(f)/vmap(outer/inner)/add", "outer > inner > add"),
        (
            "jit(zoo)/transpose(jvp(jvp()))/checkpoint/rematted_computation/remat/cos",
            "remat > [backward] > [recompute] > cos",
        ),
        ("jit(f)/transpose(jvp(transpose(jvp(a))))/mul", "a > [backward] > [backward] > mul"),
        ("jit(f)/jit(main)/jvp(b)/reduce_sum[axes=(0, 1)]", "b > reduce_sum"),
        ("jit(f)/jit(main)/jvp(scan)/while[cond_nconsts=0 name=a/b]", "scan > while"),
        ("jit(f)", ""),
        ("", ""),
        ("reduce_sum", "reduce_sum"),
        ("ws[0]", "ws[0]"),
        ("jit(f)/unbalanced)/(/add", "unbalanced) > ( > add"),
    ],
)
def test_names_are_scopes_control_flow_phases_and_a_primitive(name: str, expected: str) -> None:
    assert path(name) == expected


def test_names_that_were_recorded_are_shown_as_they_were_read() -> None:
    rows = [line.split("\t") for line in RANGES.read_text().splitlines()]
    thunks = [(re.match(r"Thunk:#(?:name=(.*),)?hlo_op=([^,#]*)", text), shown) for text, shown in rows]
    found = [(match[1] or "", match[2], shown) for match, shown in thunks if match]
    assert len(found) > 80
    for name, op, shown in found:
        assert " > ".join(filter(None, [path(name), op])) == shown


def test_scopes_of_the_user_and_operators_of_jax_are_told_apart() -> None:
    assert path_of_name("jit(f)/transpose(jvp(while))/while/body/mul") == (
        (FrameKind.SCOPE, "while"),
        (FrameKind.OPERATOR, "while"),
        (FrameKind.STATE, "[backward]"),
        (FrameKind.OPERATOR, "mul"),
    )


@given(st.text(alphabet="jvpit(/);,=[]\n é", max_size=60))
def test_whatever_a_name_is_its_frames_come_from_it(name: str) -> None:
    for _, frame in path_of_name(name):
        assert frame in ("[backward]", "[recompute]") or frame in name
