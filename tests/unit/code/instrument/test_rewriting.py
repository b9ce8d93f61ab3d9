"""PTX with clocks: the program's own statements stay as they were, and ptxas takes it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from types import ModuleType

import pytest

from bragg.code.instrument.assembling import assemble, find_ptxas, limited, target_of
from bragg.code.instrument.blocks import Activity, read_kernel
from bragg.code.instrument.rewriting import CONTROL, instrument, plain_code
from bragg.code.instrument.segments import MAX_WORDS, Activities, Segment
from bragg.code.instrument.storing import IN_GLOBAL_MEMORY, SHARED_FRAMES, SharedMemory

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import KERNELS, compiled  # noqa: E402

LEVELS = [Activities(wanted) for wanted in (set(Activity), {each for each in Activity if each.is_wait}, set())]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("level", range(3))
def test_nothing_of_the_program_changes(name: str, level: int) -> None:
    plain = compiled(name).asm["ptx"]
    timed = instrument(read_kernel(plain), LEVELS[level])
    assert [line for line in timed.text.splitlines() if "bragg_" not in line] == plain.splitlines()
    assert timed.text.count(f"{CONTROL}[") == 1


@pytest.mark.parametrize("name", KERNELS)
def test_blocks_without_frames_execute_the_code_as_it_was(name: str) -> None:
    kernel = read_kernel(compiled(name).asm["ptx"])
    clocked, copy = instrument(kernel, LEVELS[0], plain_code(kernel)).text.split("$L__bragg_plain:\n")
    assert "%clock;" in clocked
    assert "%bragg_c" not in copy
    statements = [statement for block in kernel.blocks for statement in block.statements]
    own = kernel.lines[statements[0].first : statements[-1].last + 1]
    expected = [line for line in own if not line.startswith("$L__tmp")]
    copied = [line for line in copy.replace("_bragg_copy", "").splitlines() if "bragg_" not in line]
    assert copied[: len(expected)] == expected


# Without TMA, descriptors are loops that spill; clusters are Hopper's.
@pytest.mark.parametrize(
    ("name", "capability"),
    [
        (name, each)
        for name in KERNELS
        for each in (80, 90, 100)
        if each > 80 or not ("tensordesc" in str(KERNELS[name][1]) or "num_ctas" in KERNELS[name][3])
    ],
)
def test_ptxas_takes_it_without_new_spills(name: str, capability: int) -> None:
    plain = compiled(name, capability).asm["ptx"]
    ptxas = find_ptxas(triton, target_of(plain), os.environ)
    waits = instrument(read_kernel(plain), LEVELS[1])
    kernel = read_kernel(plain)
    sampled = instrument(kernel, LEVELS[1], plain_code(kernel))
    before, *both = (assemble(ptxas, text, [], 60) for text in (plain, waits.text, sampled.text))
    for after in both:
        assert after.cubin[:4] == b"\x7fELF"
        assert CONTROL.encode() in after.cubin
        assert not after.is_serialized or before.is_serialized
        assert after.spill_bytes == before.spill_bytes == 0


@pytest.mark.parametrize("name", ["matmul8", "matmul_tma", "attention"])
def test_frames_may_wait_in_shared_memory(name: str) -> None:
    plain = compiled(name).asm["ptx"]
    store = SharedMemory(8, 1024)
    timed = instrument(read_kernel(plain), LEVELS[0], store=store)
    assert f".shared .align 16 .b8 {SHARED_FRAMES}[8192];" in timed.text
    assert (timed.store, instrument(read_kernel(plain), LEVELS[2], store=store).store) == (store, IN_GLOBAL_MEMORY)
    ours = [line for line in timed.text.splitlines() if "bragg_" in line]
    in_loop = [line for line in ours if "%bragg_on st." in line]
    assert in_loop
    assert all("st.shared.v4" in line for line in in_loop)
    assert sum("min.u32 %bragg_w11, %bragg_w8, 1024;" in line for line in ours) == plain.count("\tret;")
    ptxas = find_ptxas(triton, target_of(plain), os.environ)
    before, after = (assemble(ptxas, text, [], 60) for text in (plain, timed.text))
    assert (after.spill_bytes, after.is_serialized) == (0, before.is_serialized)
    assert shared_bytes(after.cubin) - shared_bytes(before.cubin) == store.size_bytes


def shared_bytes(cubin: bytes) -> int:
    """Static shared memory of the only kernel, with what the system keeps of it."""
    first, count, names = struct.unpack_from("<40xQ12xHH", cubin)
    rows = [struct.unpack_from("<IIQQQQIIQQ", cubin, first + 64 * number) for number in range(count)]
    return sum(row[5] for row in rows if cubin[rows[names][4] + row[0] :].startswith(b".nv.shared."))


@pytest.mark.parametrize("name", KERNELS)
def test_frames_hold_readings_in_order(name: str) -> None:
    for frame in instrument(read_kernel(compiled(name).asm["ptx"]), LEVELS[0]).frames:
        assert 2 <= len(frame.reads) <= MAX_WORDS
        assert list(frame.reads) == sorted(frame.reads)
        assert all(each.start < each.end < len(frame.reads) for each in frame.segments)
        ends = [each.end for each in frame.segments]
        assert ends == sorted(set(ends))
        assert {reading for each in frame.segments for reading in (each.start, each.end)} == set(
            range(len(frame.reads))
        )


def test_clocks_take_no_more_registers_than_the_kernel_has() -> None:
    plain = compiled("softmax").asm["ptx"]
    ptxas = find_ptxas(triton, target_of(plain), os.environ)
    clocked = instrument(read_kernel(plain), LEVELS[0]).text
    free, fewer = (assemble(ptxas, text, [], 60) for text in (clocked, limited(clocked, 32)))
    assert free.registers > fewer.registers <= 32
    assert free.spill_bytes == fewer.spill_bytes == 0
    assert limited(limited(clocked, 32), 40) == limited(clocked, 32)
    assert limited("no kernel", 40) == "no kernel"


def test_neighbours_share_a_reading() -> None:
    text = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry two(.param .u64 a)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [a];
	ld.global.b32 %r1, [%rd1];
	atom.global.add.u32 %r2, [%rd1], 1;
	add.u32 %r1, %r1, %r2;
	st.global.b32 [%rd1], %r1;
	ret;
}
"""
    (frame,) = instrument(read_kernel(text), LEVELS[0]).frames
    assert [(each.does, each.start, each.end) for each in frame.segments] == [
        (Activity.LOAD.value, 0, 1),
        (Activity.ATOMIC.value, 1, 2),
        (Activity.STORE.value, 3, 4),
    ]
    assert frame.segments[0] == Segment(Activity.LOAD.value, False, (), False, 0, 1)
    (waits,) = {len(instrument(read_kernel(text), LEVELS[1]).frames)}
    assert waits == 0


def test_a_return_that_depends_on_a_predicate_is_refused() -> None:
    text = ".version 8.0\n.target sm_90a\n.visible .entry a()\n{\n\t.reg .pred %p<2>;\n\t@%p1 ret;\n\tret;\n}\n"
    with pytest.raises(ValueError, match="predicate"):
        instrument(read_kernel(text), LEVELS[0])


def test_ptxas_that_refuses_says_why() -> None:
    with pytest.raises(ValueError, match="ptxas ended"):
        assemble(find_ptxas(triton, "sm_90a", {}), ".version 8.0\n.target sm_90a\nnonsense;\n", [], 60)
    with pytest.raises(ValueError, match="there is no ptxas"):
        find_ptxas(package("3.6.0", "/nowhere"), "sm_90a", {})


def package(version: str, directory: str) -> ModuleType:
    module = ModuleType("triton")
    module.__version__, module.__path__ = version, [directory]
    return module


@pytest.mark.parametrize(
    ("version", "target", "name"),
    [
        ("3.4.0", "sm_90a", "ptxas"),
        ("3.8.0", "sm_90a", "ptxas"),
        ("3.8.0", "sm_100a", "ptxas-blackwell"),
        ("3.9.0", "sm_80", "ptxas"),
        ("3.9.0", "sm_90a", "ptxas-blackwell"),
        ("3.10.1+git1", "sm_90a", "ptxas-blackwell"),
    ],
)
def test_the_ptxas_is_that_of_triton(version: str, target: str, name: str, tmp_path: Path) -> None:
    programs = tmp_path / "backends" / "nvidia" / "bin"
    programs.mkdir(parents=True)
    for each in ("ptxas", "ptxas-blackwell"):
        (programs / each).touch(mode=0o755)
    triton_package = package(version, str(tmp_path))
    assert find_ptxas(triton_package, target, {}) == str(programs / name)
    assert find_ptxas(triton_package, target, {"TRITON_PTXAS_PATH": "/bin/sh"}) == "/bin/sh"


def test_products_of_blackwell_and_the_wait_for_them_have_one_barrier() -> None:
    frames = instrument(read_kernel(compiled("matmul_tma", 100).asm["ptx"]), LEVELS[0]).frames
    loop = [segment for frame in frames for segment in frame.segments if segment.in_loop]
    (products,) = (each for each in loop if each.does == Activity.MMA.value)
    waits = [each for each in loop if each.does == Activity.BARRIER_WAIT.value]
    assert products.barrier is not None
    assert [each.barrier == products.barrier for each in waits] == [True, False]
