"""Instructions are parts of what JAX 0.11.2 prints for CPUs, and of asynchronous ones as XLA prints them for GPUs."""

from __future__ import annotations

import pytest

from bragg.analyze.ranks.operations import Call, call_of_frame
from bragg.record.hooks.jax.hlo_collectives import collective_of
from bragg.record.hooks.jax.hlo_text import operations_in


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "%psum.21 = f32[8,4]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,2},{1,3}}, to_apply=%r",
            "all-reduce[32 f32 in groups of 2]",
        ),
        (
            "%all-reduce = (s32[], s32[8,4]{1,0}) all-reduce(%a, %b), replica_groups={{0,1,2,3}}, to_apply=%r",
            "all-reduce[33 i32 in groups of 4]",
        ),
        (
            "%g.3 = f32[16,4]{1,0:T(8,128)} all-gather(%x), replica_groups={{0,1},{2,3}}, dimensions={0}",
            "all-gather[32 f32 in groups of 2]",
        ),
        (
            "%g.1 = (bf16[8]{0}, bf16[32]{0}) all-gather-start(%x), replica_groups=[2,4]<=[8], dimensions={0}",
            "all-gather[8 bf16 in groups of 4]",
        ),
        (
            "%s.7 = f32[8,4]{1,0} reduce-scatter(%g), replica_groups={{0,2},{1,3}}, dimensions={0}",
            "reduce-scatter[64 f32 in groups of 2]",
        ),
        (
            "%all-to-all = (f8e4m3fn[4]{0}, f8e4m3fn[4]{0}) all-to-all(%a, %b), replica_groups={{0,1},{2,3}}",
            "all-to-all[8 f8e4m3 in groups of 2]",
        ),
    ],
)
def test_collectives_tell_the_input_of_a_device(line: str, told: str) -> None:
    code = line.partition("(%")[0].rpartition(" ")[2]
    assert collective_of(code, line) == f"collective {told}"


@pytest.mark.parametrize(
    "line",
    [
        "%p.3 = f32[8,4]{1,0} collective-permute(%s), source_target_pairs={{0,2},{2,0}}",
        "%a = (f32[], bf16[4]{0}) all-reduce(%a, %b), replica_groups={{0,1}}",
        "%a = f32[8]{0} all-reduce(%x), replica_groups={}, to_apply=%r",
        "%all-reduce-done = f32[8]{0} all-reduce-done(%x)",
        "%add.7 = f32[8]{0} add(%a, %b)",
    ],
)
def test_what_is_a_message_or_not_known_is_not_told(line: str) -> None:
    assert collective_of(line.partition("(%")[0].rpartition(" ")[2], line) == ""


def test_an_asynchronous_instruction_tells_of_the_one_that_it_starts() -> None:
    text = """\
HloModule jit_f

%async_computation (param_0: f32[8,4]) -> f32[4,4] {
  %param_0 = f32[8,4]{1,0} parameter(0)
  ROOT %reduce-scatter.1 = f32[4,4]{1,0} reduce-scatter(%param_0), replica_groups={{0,1}}, dimensions={0}
}

ENTRY %main (x: f32[8,4]) -> f32[4,4] {
  %x = f32[8,4]{1,0} parameter(0)
  %reduce-scatter-start = ((f32[8,4]{1,0}), f32[4,4]{1,0}) async-start(%x), calls=%async_computation
  %add.1 = f32[8,4]{1,0} add(%x, %x)
}
"""
    found = operations_in(text, lambda _: False)
    assert found["reduce-scatter-start"].collective == "collective reduce-scatter[32 f32 in groups of 2]"
    assert found["add.1"].collective == ""
    assert call_of_frame(found["reduce-scatter-start"].collective) == Call("", "reduce-scatter", "f32", 128)
