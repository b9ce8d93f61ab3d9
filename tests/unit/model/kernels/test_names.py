from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.model import DurationTable, FrameKind
from bragg.model.kernels.names import base_name, is_specialized, operator_name, specialization
from bragg.model.regroup import fold_specializations
from tests.support.profiles import profile_from_text, tree_to_text


@pytest.mark.parametrize(
    ("name", "base", "inner"),
    [
        ("matmul<BM=128 w8 s3 bf16>", "matmul", "BM=128 w8 s3 bf16"),
        ("triton_poi_fused_add_0<XBLOCK=256 w4 s1 f32>", "triton_poi_fused_add_0", "XBLOCK=256 w4 s1 f32"),
        ("matmul", "matmul", ""),
        ("_Z3addPf", "_Z3addPf", ""),
        ("void at::native::fill<4>(int)", "void at::native::fill<4>(int)", ""),
        ("<cuda graph 7>", "<cuda graph 7>", ""),
        # Too long to say, and of a kernel whose name another one has.
        ("k<P1=1 P2=2 #1f3a>", "k", "P1=1 P2=2 #1f3a"),
        ("k<BM=1 w4 s3 bf16*2 f32 c2x1x1 !16:M #1f3ab>", "k", "BM=1 w4 s3 bf16*2 f32 c2x1x1 !16:M #1f3ab"),
        # Names that the program, a compiler or launch_metadata chose.
        ("my_kernel<int>", "my_kernel<int>", ""),
        ("elementwise<4>", "elementwise<4>", ""),
        ("CatArrayBatchedCopy<unsigned int, 4>", "CatArrayBatchedCopy<unsigned int, 4>", ""),
        ("add[1024]", "add[1024]", ""),
        ("matmul <M=8, N=8, K=8>", "matmul <M=8, N=8, K=8>", ""),
        ("matmul_<grid:8x1x1>_<warps:4>_<stages:3>", "matmul_<grid:8x1x1>_<warps:4>_<stages:3>", ""),
    ],
)
def test_a_name_is_split_where_its_specialization_begins(name: str, base: str, inner: str) -> None:
    assert base_name(name) == base
    assert specialization(name) == inner
    assert is_specialized(name) is bool(inner)


def test_specializations_of_a_kernel_become_the_kernel_where_they_are_siblings() -> None:
    profile = profile_from_text(
        dedent("""\
            root
              forward
                matmul<BM=64 w4 s3> 2us
                matmul<BM=128 w8 s3> 3us x2
              backward
                matmul<BM=128 w8 s3> 5us
                relu 1us""")
    )
    frames = [row for row, kind in enumerate(profile.tree.frames.kind) if kind == FrameKind.KERNEL]
    durations = DurationTable(frames, [40] * len(frames), [1] * len(frames), [0] * len(frames))
    folded = fold_specializations(replace(profile, durations=durations))
    folded.check()
    assert tree_to_text(folded) == dedent("""\
        root
          forward
            matmul 5us x3
          backward
            matmul 5us
            relu 1us""")
    assert (
        tree_to_text(fold_specializations(profile_from_text("root\n  copy<4> 1us\n  copy<8> 1us"))).count("copy<") == 2
    )
    names = [folded.tree.frames.name[frame] for frame in folded.durations.frame]
    assert dict(zip(names, folded.durations.count.tolist(), strict=True)) == {"matmul": 2, "relu": 1}


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("aten::mm[2x2 f32, 2x2 complex<float>]", "aten::mm"),
        ("aten::mul[() i64, 7, 1x1x1x1x1x1x1x1x..., ...]", "aten::mul"),
        ("aten::mm", "aten::mm"),
        ("my range, [a]", "my range, [a]"),
        ("[backward]", "[backward]"),
        ("epoch[train]", "epoch[train]"),
    ],
)
def test_the_shapes_of_an_operator_are_no_part_of_its_name(name: str, operator: str) -> None:
    assert operator_name(name) == operator


def test_operators_of_all_shapes_are_one_where_they_are_siblings() -> None:
    text = "root\n  aten::mm[2x2 f32] #operator\n    k 1us\n  aten::mm[4x4 f32] #operator\n    k 2us"
    profile = profile_from_text(text)
    folded = fold_specializations(profile)
    assert [folded.tree.label(node) for node in range(1, len(folded.tree))] == ["aten::mm", "k"]
    assert folded.inclusive("gpu_time")[1] == 3000


@given(st.text("aten:mx2 ,[]()f.\\n", max_size=60))
def test_what_is_cut_off_a_name_is_in_brackets_at_its_end(name: str) -> None:
    operator = operator_name(name)
    rest = name.removeprefix(operator)
    assert operator + rest == name
    assert rest == "" or (rest[0] + rest[-1] == "[]" and rest.count("[") == 1)
