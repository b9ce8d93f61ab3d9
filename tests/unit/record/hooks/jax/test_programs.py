from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.jax import programs as jax
from tests.support.fake_core import FakeCore
from tests.unit.record.hooks.jax.hlo.test_hlo_text import TABLES


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore()
    monkeypatch.setattr(jax, "core", fake)
    monkeypatch.setattr(jax, "_programs", set())
    return fake


def compiler(result: Any) -> ModuleType:
    """A module that compiles, to `result` or with the exception that it is."""

    def compile_or_get_cached(backend: Any, computation: Any, devices: Any, *, option: int = 0) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    module = ModuleType("compiler")
    module.compile_or_get_cached = compile_or_get_cached  # type: ignore[attr-defined]
    return module


COMPUTATION = SimpleNamespace(
    operation=SimpleNamespace(attributes={"sym_name": SimpleNamespace(value="jit_loss")}),
)
EXECUTABLE = SimpleNamespace(hlo_modules=lambda: [SimpleNamespace(name="jit_loss", to_string=lambda: TABLES)])
GPU, CPU = SimpleNamespace(platform="gpu"), SimpleNamespace(platform="cpu")
SCOPE = ["[compile] jit_loss", "enter", ("lend_context",), ("return_context",), "exit"]


def test_a_compilation_is_a_scope_and_its_threads_are_in_it(core: FakeCore) -> None:
    module = compiler(EXECUTABLE)
    undo = jax.record_compilations(module)
    assert undo is not None
    assert module.compile_or_get_cached(CPU, COMPUTATION, [], option=1) is EXECUTABLE
    assert core.calls == SCOPE
    undo()
    module.compile_or_get_cached(CPU, COMPUTATION, [])
    assert core.calls == SCOPE


def test_programs_of_one_name_and_shapes_of_their_inputs_are_told_apart(
    core: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "_compiled", {})
    module = compiler(EXECUTABLE)
    undo = jax.record_compilations(module)
    main = "module {{\n  func.func public @main(%arg0: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n{1}"
    texts = [main.format(*each) for each in ((8, "add"), (8, "add"), (8, "mul"), (16, "add"))]
    texts.append(texts[0].replace("-> tensor<8xf32>", "-> tensor<f32>"))  # as a gradient has other results
    for text in texts:
        operation = SimpleNamespace(
            attributes=COMPUTATION.operation.attributes, get_asm=lambda text=text, large_elements_limit=0: text
        )
        module.compile_or_get_cached(CPU, SimpleNamespace(operation=operation), [])
    assert undo is not None
    undo()
    assert [call[1:] for call in core.calls if call[0] == "describe_scope"] == [
        ("[compile] jit_loss", "compiled program 0", "inputs 0"),
        ("[compile] jit_loss", "compiled program 0", "inputs 0"),
        ("[compile] jit_loss", "compiled program 1", "inputs 0"),
        ("[compile] jit_loss", "compiled program 2", "inputs 1"),
        ("[compile] jit_loss", "compiled program 3", "inputs 0"),
    ]


# What XLA compiles a sum over two GPUs to; it prints `fusion-start(…)` for `async-start(…), calls=%async_computation`.
STARTED = """\
HloModule jit_f

%region_0 (a: f32[], b: f32[]) -> f32[] {
  %b = f32[] parameter(1)
  %a = f32[] parameter(0)
  ROOT %add.0 = f32[] add(%a, %b)
}

%fused_psum (p: f32[1,1024]) -> f32[1,1024] {
  %p = f32[1,1024]{1,0} parameter(0)
  ROOT %psum.7.2 = f32[1,1024]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1}}, to_apply=%region_0
}

%async_computation (p: f32[1,1024]) -> f32[1,1024] {
  %p = f32[1,1024]{1,0} parameter(0)
  ROOT %psum.7.0-fusion.1 = f32[1,1024]{1,0} fusion(%p), kind=kCustom, calls=%fused_psum
}

ENTRY %main (x: f32[1,1024]) -> f32[1,1024] {
  %x = f32[1,1024]{1,0} parameter(0)
  %fusion-start = ((f32[1,1024]{1,0}), f32[1,1024]{1,0}) async-start(%x), calls=%async_computation
  ROOT %fusion-done = f32[1,1024]{1,0} async-done(%fusion-start)
}
"""


def test_what_an_asynchronous_instruction_starts_has_its_own_name(core: FakeCore) -> None:
    hlo = pytest.importorskip("jaxlib._hlo", reason="jaxlib has no such module")
    module = hlo.hlo_module_from_text(STARTED)
    assert "psum.7.0-fusion.1" not in module.to_string()
    jax._keep_operations(SimpleNamespace(hlo_modules=lambda: [module]), None)
    operations = json.loads(core.calls[-1][3])["ops"]
    assert operations["psum.7.0-fusion.1"] == operations["fusion-start"]
    assert operations["fusion-start"][-1] == "collective all-reduce[1024 f32 in groups of 2]"


def test_what_a_program_of_a_gpu_says_is_kept(core: FakeCore) -> None:
    module = compiler(EXECUTABLE)
    jax.record_compilations(module)
    module.compile_or_get_cached(GPU, COMPUTATION, [])
    function, name, key, text = core.calls[-1]
    assert (function, name, key.split()[0]) == ("describe_operator", "jit_loss", "hlo_program")
    assert json.loads(text)["ops"]["fusion"] == ["jit(a)/mul", 0, 7]


def test_programs_that_exist_are_told_once(core: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    live = [
        SimpleNamespace(
            platform=platform,
            live_executables=lambda: [EXECUTABLE] * 2,
            device_count=lambda: 2,
            local_device_count=lambda: 1,
        )
        for platform in ("cpu", "gpu")
    ]
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", SimpleNamespace(_backends=dict(enumerate(live))))
    for _ in range(2):
        undo = jax.record_compilations(compiler(EXECUTABLE))
        assert undo is not None
        undo()
    assert [call[:2] for call in core.calls] == [("describe_operator", "jit_loss")]


def test_collectives_are_told_with_the_devices_of_this_process(core: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "  %psum.1 = f32[4] all-reduce(%p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true"
    text = f"HloModule jit_f, num_partitions=2\n\nENTRY %main (p: f32[4]) -> f32[4] {{\n{line}\n}}\n"
    client = SimpleNamespace(process_index=lambda: 1)
    devices = [
        SimpleNamespace(id=7 + process, process_index=process, client=client, local_hardware_id=0) for process in (0, 1)
    ]
    executable = SimpleNamespace(
        hlo_modules=lambda: [SimpleNamespace(name="jit_f", to_string=lambda: text)], local_devices=lambda: devices[1:]
    )
    live = SimpleNamespace(
        platform="gpu",
        live_executables=lambda: [executable],
        device_count=lambda: 2,
        local_device_count=lambda: 1,
    )
    module = compiler(executable)
    jax.record_compilations(module)
    module.compile_or_get_cached(GPU, COMPUTATION, [devices])
    operations = json.loads(core.calls[-1][3])["ops"]
    assert operations["psum.1"][-1] == "collective all-reduce[4 f32, group devices 7,8 of 2]"
    n_calls = len(core.calls)
    # Another session, which does not know all devices of programs that exist, says nothing else.
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", SimpleNamespace(_backends={0: live}))
    jax.record_compilations(compiler(executable))
    assert len(core.calls) == n_calls


def test_an_exception_of_the_compiler_reaches_the_program(core: FakeCore) -> None:
    module = compiler(MemoryError("too large"))
    jax.record_compilations(module)
    with pytest.raises(MemoryError, match="too large"):
        module.compile_or_get_cached(GPU, COMPUTATION, [])
    assert core.calls == SCOPE


def test_a_program_that_cannot_be_read_costs_a_note(core: FakeCore, capsys: pytest.CaptureFixture[str]) -> None:
    module = compiler("an executable of another kind")
    jax.record_compilations(module)
    assert module.compile_or_get_cached(GPU, SimpleNamespace(), []) == "an executable of another kind"
    assert core.calls[0] == "[compile] a program"
    assert "_keep_operations failed" in capsys.readouterr().err


def test_a_jax_that_compiles_otherwise_is_said(core: FakeCore, capsys: pytest.CaptureFixture[str]) -> None:
    assert jax.record_compilations(ModuleType("compiler")) is None
    assert "hides its compiler" in capsys.readouterr().err
    assert core.calls == []
