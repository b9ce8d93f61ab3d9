"""Modes of measuring inside kernels, and the records that Triton's compiler makes of marks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bragg.proton.errors import InvalidArgument
from bragg.proton.inside.compiling import ALIGNMENT, Passes, kernel_of, mode_of
from bragg.proton.mode import MMA, Default, InstrumentationMode, Optimize


def test_a_mode_is_read_from_its_text() -> None:
    mode = mode_of("default:buffer_type=global:buffer_size=4096:optimizations=clock32,time_shift:sampling_options=0,2")
    assert isinstance(mode, Default)
    assert (mode.buffer_type.name, mode.buffer_size, mode.sampling_options) == ("GLOBAL", 4096, "0,2")
    assert mode.optimizations == [Optimize.CLOCK32, Optimize.TIMESHIFT]
    assert isinstance(mode_of("mma"), MMA)
    assert mode_of(None) == mode_of("") == mode_of("default:granularity=warp") == Default()
    assert mode_of(mode) is mode


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fast", "Unknown mode: fast"),
        ("default:quick", "Malformed instrumentation option: 'quick'"),
        ("default:metric_type=joule", "Unknown metric_type: joule"),
        ("default:buffer_size=big", "invalid literal"),
        ("default:colour=red", "unexpected keyword"),
        ("default:granularity=cta", "granularity=cta: Triton's compiler knows that of warps alone"),
        (Default(granularity="warp_group"), "granularity=warp_group"),
        ("default:buffer_strategy=flush", "buffer_strategy=flush: Triton's compiler has no passes"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(given: str | InstrumentationMode, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as raised:
        mode_of(given)
    assert "\n" not in str(raised.value)


triton = pytest.importorskip("triton", minversion="3.6")

KERNEL = """
import triton, triton.language as tl
import bragg.proton.language as pl

@triton.jit
def add(x, y, n: tl.constexpr):
    with pl.scope("kernel"):
        at = tl.arange(0, n)
        pl.enter_scope("load")
        value = tl.load(x + at)
        pl.exit_scope("load")
        tl.store(y + at, value)
"""


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    from bragg.proton.flags import flags
    from bragg.proton.language import disable_semantic, enable_semantic

    compiler = triton.backends.backends["nvidia"].compiler
    if not hasattr(compiler, "instrumentation"):
        pytest.skip("this Triton takes no passes")
    monkeypatch.setattr(compiler, "instrumentation", Passes(mode_of(None), 232_448))
    monkeypatch.setattr(flags, "instrumentation_on", True)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    enable_semantic("triton")
    yield
    disable_semantic("triton")


def compiled(tmp_path: Path, text: str = KERNEL, override: Path | None = None, amd: str = "") -> Any:
    import importlib.util

    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = tmp_path / "marked_kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("marked_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = ASTSource(module.add, {"x": "*fp32", "y": "*fp32", "n": "constexpr"}, {"n": 128})
    options = {"ir_override": str(override)} if override else {}
    target = GPUTarget("hip", amd, 64) if amd else GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options=options)


@pytest.mark.usefixtures("passes")
def test_marks_become_records_with_names_and_parents(tmp_path: Path) -> None:
    kernel = compiled(tmp_path)
    assert kernel.asm["ttir"].count("proton.record") == 4
    assert "clock" in kernel.asm["ptx"]
    found = kernel_of(kernel.metadata_group)
    names = {name: number for number, name in found.scopes.items()}
    assert set(names) == {"kernel", "load"}
    assert found.parents[names["load"]] == names["kernel"]
    assert found.block_bytes > 40 + 4 * found.warps
    assert found.warps == 4


@pytest.mark.usefixtures("passes")
def test_records_of_an_overridden_kernel_are_read_as_those_of_marks(tmp_path: Path) -> None:
    unmarked = [line for line in KERNEL.splitlines() if "_scope" not in line]
    plain = "\n".join(unmarked).replace('with pl.scope("kernel"):', "if n > 0:")
    kernel = compiled(tmp_path, plain)
    assert "proton.record" not in kernel.asm["ttgir"]
    lines = kernel.asm["ttgir"].splitlines()
    (load,) = [number for number, line in enumerate(lines) if "= tt.load" in line]
    lines[load : load + 1] = ['    proton.record start "load"', lines[load], '    proton.record end "load"']
    override = tmp_path / "add.ttgir"
    override.write_text("\n".join(lines))
    changed = compiled(tmp_path, plain, override)
    assert "clock" in changed.asm["ptx"]
    assert set(kernel_of(changed.metadata_group).scopes.values()) == {"load"}


def test_without_a_session_marks_compile_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    kernel = compiled(tmp_path)
    assert "proton.record" not in kernel.asm["ttir"]
    assert "clock" not in kernel.asm["ptx"]


@pytest.mark.skipif(triton.__version__.startswith("3.6."), reason="its passes for AMD GPUs fail")
@pytest.mark.usefixtures("passes")
@pytest.mark.parametrize("options", ["", ":optimizations=clock32", ":optimizations=sched_barriers"])
def test_records_of_an_amd_gpu_compile_with_a_global_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    compiler = triton.backends.backends["amd"].compiler
    mode = mode_of(f"default:buffer_type=global:buffer_size=1024{options}")
    monkeypatch.setattr(compiler, "instrumentation", Passes(mode, 65_536, "gfx942:sramecc+:xnack-"))
    kernel = compiled(tmp_path, amd="gfx942")
    assert kernel.asm["ttir"].count("proton.record") == 4
    assert "s_memtime" in kernel.asm["amdgcn"]
    found = kernel_of(kernel.metadata_group)
    assert set(found.scopes.values()) == {"kernel", "load"}
    assert (found.block_bytes, found.warps) == (9 * ALIGNMENT, 4)  # 40 + 4 * 4 + 1024 bytes, rounded up
