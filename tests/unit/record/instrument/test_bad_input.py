"""Kernels that cannot have clocks, or not all of them: each is launched as it is, and the reason is told."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.code.instrument.assembling import assemble, find_ptxas
from bragg.code.instrument.blocks import Activity, read_kernel
from bragg.code.instrument.clocked import Tools, clocked, clocked_in_part
from bragg.code.instrument.rewriting import instrument
from bragg.code.instrument.segments import Activities
from bragg.code.sass.disassembler import find_disassembler
from bragg.record import RecordConfig
from bragg.record.hooks.triton import kernel_names
from bragg.record.inside import metadata
from bragg.record.instrument import chosen, kernels
from bragg.record.instrument.chosen import Chosen
from bragg.record.instrument.compiled_kernel import source_scopes

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.experimental import gluon  # noqa: E402
from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon._runtime import GluonASTSource  # noqa: E402

import bragg  # noqa: E402
from tests.support.timed_kernels import compiled  # noqa: E402

HOPPER = GPUTarget("cuda", 90, 32)
EVERYTHING = Activities(frozenset(Activity))


@triton.jit(noinline=True)
def twice(x):
    return x * 2


@triton.jit
def calling(x, y):
    tl.store(y, twice(tl.load(x)))


@triton.jit
def without_lines(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + 3)


@gluon.jit
def gluon_copy(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    with bragg.kernel_scope("load"):
        value = gl.load(x + at, at < n)
    gl.store(y + at, value + 1, at < n)


def launched(kernel: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a kernel when it is launched the first time; it is launched as it is."""
    given = Chosen(RecordConfig(instrument=".").options()).undecided(lambda: kernel, "k", lambda *grid: grid)
    assert given(1, 2, 3) == (1, 2, 3)
    assert given(1, 2, 3) == (1, 2, 3)
    return capsys.readouterr().err


def test_a_function_that_was_not_inlined_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = triton.compile(ASTSource(calling, {"x": "*fp32", "y": "*fp32"}), target=HOPPER)
    told = launched(kernel, capsys)
    assert told.count("k has no clocks: it calls functions that were not inlined") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the text names no target"),
        (".target sm_90a\n.entry broken(\n", "does not say how many warps"),
        (".target sm_90a\n.reqntid 128\n.entry broken()\n{\n", "the braces of the kernel do not match"),
        (".target sm_90a\n.reqntid 128\n.entry a() {\nret;\n}\n.entry b() {\nret;\n}\n", "2 kernels, not one"),
    ],
)
def test_a_text_that_cannot_be_read_is_left_alone(text: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in launched(SimpleNamespace(asm={"ptx": text}, metadata=METADATA, src=None), capsys)


METADATA = SimpleNamespace(num_ctas=1, shared=0)


def test_a_directive_that_ptxas_does_not_know_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    text = compiled("copy").asm["ptx"].replace("\tret;", "\t.strange 3;\n\tret;")
    assert "ptxas ended" in launched(SimpleNamespace(asm={"ptx": text}, metadata=METADATA, src=None), capsys)


def test_no_ptxas_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(triton, "__path__", ["/nowhere"])
    assert "there is no ptxas" in launched(compiled("copy"), capsys)


def test_without_line_tables_stretches_have_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    source = ASTSource(without_lines, {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}, constexprs={"BLOCK": 256})
    text = triton.compile(source, target=HOPPER).asm["ptx"]
    assert ".loc" not in text
    (frame,) = instrument(read_kernel(text), EVERYTHING).frames
    assert {(each.does, each.place) for each in frame.segments} == {
        (Activity.LOAD.value, ()),
        (Activity.STORE.value, ()),
    }


def test_the_programs_own_limit_of_registers_stays() -> None:
    source = ASTSource(without_lines, {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}, constexprs={"BLOCK": 4096})
    text = triton.compile(source, target=HOPPER, options={"maxnreg": 40}).asm["ptx"]
    assert ".maxnreg 40" in text
    kernel, ptxas = read_kernel(text), find_ptxas(triton, "sm_90a", os.environ)
    plain = assemble(ptxas, text, [], 60)
    tools = Tools(ptxas, [], 60, find_disassembler(os.environ))
    for make in (clocked, clocked_in_part):
        made = make(kernel, EVERYTHING, plain, tools)
        assert made.instrumented.text.count(".maxnreg 40") == 1
        assert made.binary.registers <= 40


def test_machine_code_that_the_program_overrides_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = compiled("copy")
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    from triton.runtime.cache import get_override_manager

    manager = get_override_manager(kernel.src.hash())
    Path(manager.cache_dir).mkdir(parents=True, exist_ok=True)
    assert "overrides" not in launched(kernel, capsys)
    Path(manager.cache_dir, "copy.cubin").write_bytes(kernel.asm["cubin"])
    assert "k has no clocks: the program overrides its machine code" in launched(kernel, capsys)


def test_one_session_at_a_time_has_a_kernels_clocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "_asked", {})
    monkeypatch.setattr(kernel_names, "_followers", [])
    monkeypatch.setattr(chosen.Chosen, "_made", lambda *_: None)
    undo = [kernels.instrument_triton(Chosen(RecordConfig(instrument=".").options()), triton) for _ in range(2)]
    kernel = SimpleNamespace(_run=lambda *given: given, src=SimpleNamespace(fn=None))
    for follower in kernel_names._followers:
        follower(kernel, "k")
    assert kernel._run._launch.__name__ == "<lambda>"
    assert capsys.readouterr().err.count("k has no clocks in this session: those of another one are in it") == 1
    for each in undo:
        each()


def test_what_was_not_launched_in_a_session_has_no_clocks_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_asked", {})
    monkeypatch.setattr(kernel_names, "_followers", [])
    monkeypatch.setattr(chosen.Chosen, "_made", lambda *_: pytest.fail("the session has ended"))
    undo = kernels.instrument_triton(Chosen(RecordConfig(instrument=".").options()), triton)
    kernel = SimpleNamespace(_run=lambda *given: given, src=SimpleNamespace(fn=None))
    for follower in kernel_names._followers:
        follower(kernel, "k")
    undo()
    assert kernel._run(1, 2) == (1, 2)


def test_a_gluon_kernel_has_clocks_and_scopes() -> None:
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = GluonASTSource(gluon_copy, types, constexprs={"BLOCK": 1024})
    kernel = triton.compile(source, target=HOPPER, options={"num_warps": 4})
    scopes = source_scopes(kernel, read_kernel(kernel.asm["ptx"]))
    assert scopes is not None
    assert set(scopes.by_line.values()) == {"load"}
    text = kernel.asm["ptx"]
    (frame,) = instrument(read_kernel(text), scopes).frames
    assert [each.does for each in frame.segments] == ["load"]
    (frame,) = instrument(read_kernel(text), EVERYTHING).frames
    assert {each.does for each in frame.segments} == {Activity.LOAD.value, Activity.STORE.value}
