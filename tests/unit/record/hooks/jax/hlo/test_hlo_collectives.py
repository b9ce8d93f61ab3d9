"""Instructions are parts of what JAX 0.11.2 prints for CPUs, and of asynchronous ones as XLA prints them for GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.ranks.operations import Call, call_of_frame
from bragg.record.hooks.jax.hlo.collectives import CompiledFor, collective_of
from bragg.record.hooks.jax.hlo.text import operations_in


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


def test_a_kernel_of_xla_that_sums_tells_of_the_instruction_in_it() -> None:
    text = """\
HloModule jit_f

%fused_all_reduce (param_0: f32[1,1024]) -> f32[1,1024] {
  %param_0 = f32[1,1024]{1,0} parameter(0)
  ROOT %psum.7.2 = f32[1,1024]{1,0} all-reduce(%param_0), replica_groups=mesh['x'=2] {'x'}, to_apply=%region_0
}

ENTRY %main (x: f32[1,1024]) -> f32[1,1024] {
  %x = f32[1,1024]{1,0} parameter(0)
  ROOT %psum.7.0-fusion.1 = f32[1,1024]{1,0} fusion(%x), kind=kCustom, calls=%fused_all_reduce
}
"""
    found = operations_in(text, lambda _: False)
    assert found["psum.7.0-fusion.1"].collective == "collective all-reduce[1024 f32 in groups of 2]"


# What JAX compiles for a mesh of devices [[2, 0], [3, 1]]; the text counts them in this order.
MESH = CompiledFor((2, 0, 3, 1), dict(enumerate((2, 0, 3, 1))), n_partitions=4)
PSUM = "%psum.21 = f32[4,4]{1,0} all-reduce(%p), channel_id=1, replica_groups=GROUPS, use_global_device_ids=true"


def of_mesh(groups: str, gpus: dict[int, int]) -> str:
    told = collective_of("all-reduce", PSUM.replace("GROUPS", groups), replace(MESH, gpus=gpus))
    return told.removeprefix("collective all-reduce[16 f32, group ").removesuffix("]")


@pytest.mark.parametrize(
    ("groups", "of_process", "of_device_3"),
    [
        ("{{0,1,2,3}}", "devices 0-3 of 4", "devices 0-3 of 4"),
        ("{}", "devices 0-3 of 4", "devices 0-3 of 4"),
        ("{{0,2},{1,3}}", "devices 2,3 on GPU 2,3 or devices 0,1 on GPU 0,1 of 2", "devices 2,3 of 2"),
        ("[2,2]<=[4]", "devices 0,2 on GPU 0,2 or devices 1,3 on GPU 1,3 of 2", "devices 1,3 of 2"),
        ("[2,2]<=[2,2]T(1,0)", "devices 2,3 on GPU 2,3 or devices 0,1 on GPU 0,1 of 2", "devices 2,3 of 2"),
        ("mesh['x'=4] {'x'}", "devices 0-3 of 4", "devices 0-3 of 4"),
        ("mesh['a'=2,'b'=2] {'b'}", "devices 0,2 on GPU 0,2 or devices 1,3 on GPU 1,3 of 2", "devices 1,3 of 2"),
        *(
            (groups, "devices 2,3 on GPU 2,3 or devices 0,1 on GPU 0,1 of 2", "devices 2,3 of 2")
            for groups in (
                "mesh['a'=2,'b'=2] {'a'}",
                "mesh['a'=4] {'a':(1)2}",
                "mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'b'}",
                "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}",
            )
        ),
    ],
)
def test_members_are_devices_by_their_ids(groups: str, of_process: str, of_device_3: str) -> None:
    assert of_mesh(groups, dict(MESH.gpus)) == of_process
    assert of_mesh(groups, {2: 0}) == of_device_3  # alone in its process


BROKEN_MESHES = [
    "mesh['a'=4] {'b'}",
    "mesh['a'=4] {'a':(3)2}",
    "mesh['a'=3] {'a'}",
    "mesh['a'=4], device_ids=(0,1) {'a'}",
    "mesh['a'=4], device_ids=([2,2]T(1,1)) {'a'}",
]


@pytest.mark.parametrize("groups", ["{{0,9},{1,2}}", "[2,2]<=[4]T(3)", "[2,2]<=[5]", "{{0},{1}}", *BROKEN_MESHES])
def test_groups_that_do_not_name_each_device_are_not_named(groups: str) -> None:
    assert "group " not in collective_of("all-reduce", PSUM.replace("GROUPS", groups), MESH)


def test_numbers_of_replicas_are_no_devices_where_a_program_has_parts() -> None:
    line = PSUM.replace("GROUPS", "{{0,1}}").replace(", use_global_device_ids=true", "")
    two = CompiledFor((4, 5), {0: 0})
    assert collective_of("all-reduce", line, two) == "collective all-reduce[16 f32, group devices 4,5 of 2]"
    assert collective_of("all-reduce", line, replace(two, n_partitions=2)).endswith(" in groups of 2]")
    text = f"HloModule jit_f, num_partitions=2\n\nENTRY %main (p: f32[4,4]) -> f32[4,4] {{\n  {line}\n}}\n"
    assert operations_in(text, lambda _: False, two)["psum.21"].collective.endswith(" in groups of 2]")
