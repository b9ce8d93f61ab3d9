"""Modes of measuring inside kernels, and the records that Triton's compiler makes of marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bragg.proton.errors import InvalidArgument, ProfilerUnavailable
from bragg.proton.inside import compiling
from bragg.proton.inside.compiling import ALIGNMENT, Passes, kernel_of, mode_of, plug_in, require_triton
from bragg.proton.inside.records import read_records
from bragg.proton.inside.results import Launch, Results
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

    unplug = plug_in(triton, "nvidia", Passes(mode_of(None), 232_448))
    monkeypatch.setattr(flags, "instrumentation_on", True)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    enable_semantic("triton")
    yield
    disable_semantic("triton")
    unplug()


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


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Any]:
    """What compilers of Triton 3.9 call, by point and package."""
    found: dict[tuple[str, str], Any] = {}

    def register(*, point: str, backend: str, callback: Any) -> None:
        if (point, backend) in found:
            raise RuntimeError(f"Instrumentation already registered: {(point, backend)}")
        found[point, backend] = callback

    def unregister(*, point: str, backend: str) -> None:
        found.pop((point, backend), None)

    module = SimpleNamespace(register_instrumentation=register, unregister_instrumentation=unregister)
    monkeypatch.setattr(compiling, "import_module", lambda name: module)
    return found


def test_a_compiler_that_calls_by_points_has_them_while_a_session_lasts(registry: dict[tuple[str, str], Any]) -> None:
    unplug = plug_in(triton, "nvidia", Passes(mode_of(None), 232_448))
    assert list(registry) == [(point, "nvidia") for point in ("load-dialects", "ttgpuir-to-llvmir", "llvmir-to-llvm")]
    unplug()
    assert not registry


def test_points_that_another_session_has_are_left_to_it(registry: dict[tuple[str, str], Any]) -> None:
    registry["llvmir-to-llvm", "nvidia"] = "its"
    with pytest.raises(ProfilerUnavailable, match="Instrumentation already registered"):
        plug_in(triton, "nvidia", Passes(mode_of(None), 232_448))
    assert registry == {("llvmir-to-llvm", "nvidia"): "its"}


def test_without_a_session_marks_compile_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    kernel = compiled(tmp_path)
    assert "proton.record" not in kernel.asm["ttir"]
    assert "clock" not in kernel.asm["ptx"]


IS_3_6 = triton.__version__.startswith("3.6.")


@pytest.fixture
def amd(passes: None) -> Iterator[Callable[[str], None]]:
    """Chooses a mode for an AMD GPU."""
    unplug: list[Callable[[], None]] = []

    def choose(mode: str) -> None:
        unplug.append(plug_in(triton, "amd", Passes(mode_of(mode), 65_536, "gfx942:sramecc+:xnack-")))

    yield choose
    for each in unplug:
        each()


@pytest.mark.parametrize("options", ["", ":optimizations=clock32", ":optimizations=sched_barriers"])
@pytest.mark.parametrize("where", ["global", "shared"])
def test_records_of_an_amd_gpu_compile(tmp_path: Path, amd: Callable[[str], None], where: str, options: str) -> None:
    if IS_3_6 and where == "global":
        pytest.skip("its passes for AMD GPUs fail")
    amd(f"default:buffer_type={where}:buffer_size=1024{options}")
    kernel = compiled(tmp_path, amd="gfx942")
    assert kernel.asm["ttir"].count("proton.record") == 4
    assert "s_memtime" in kernel.asm["amdgcn"]
    found = kernel_of(kernel.metadata_group)
    assert set(found.scopes.values()) == {"kernel", "load"}
    assert (found.block_bytes, found.warps) == (9 * ALIGNMENT, 4)  # 40 + 4 * 4 + 1024 bytes, rounded up


def test_an_amd_gpu_is_refused_where_the_passes_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    target = SimpleNamespace(backend="hip", arch="gfx942")
    monkeypatch.setattr(triton.runtime.driver, "_active", SimpleNamespace(get_current_target=lambda: target))
    monkeypatch.setattr(triton, "__version__", "3.6.0")
    assert require_triton(mode_of("default:buffer_type=shared")) is triton
    with pytest.raises(ProfilerUnavailable, match="for AMD GPUs fail with buffer_type=global") as raised:
        require_triton(mode_of("default:buffer_type=global"))
    assert raised.value.hint == "Use buffer_type=shared, or Triton 3.7 to 3.9"


def test_what_an_amd_gpu_would_store_is_read(tmp_path: Path, amd: Callable[[str], None]) -> None:
    """The buffer is built to what the machine code stores; it was not recorded on a GPU."""
    amd("default:buffer_type=shared:buffer_size=1024")
    kernel = compiled(tmp_path, amd="gfx942")
    found, text = kernel_of(kernel.metadata_group), kernel.asm["amdgcn"]
    assert "0xdeadbeef" in text
    for register in ("HW_REG_XCC_ID, 0, ", "HW_REG_HW_ID, 13, 3", "HW_REG_HW_ID, 8, 4"):
        assert register in text  # its die, shader engine, and compute unit in that
    assert re.search(r"s_mul_hi_u32 s\d+, s\d+, 10\b", text)  # the real-time counter has steps of 10 ns
    assert {int(each) for each in re.findall(r"global_store_dword(?:x\d)? .* offset:(\d+)", text)} >= {
        12,
        16,
        24,
        32,
        40,
    }
    assert re.search(rf"s_mul(?:k_i32 s\d+|_i32 s\d+, s\d+), {found.block_bytes:#x}\b", text)

    numbers = {name: number for number, name in found.scopes.items()}
    start = 2**32 - 40  # of the clock, whose low half begins anew meanwhile
    marks = [("kernel", 0, 0), ("load", 0, 10), ("load", 1, 60), ("kernel", 1, 300)]
    words = np.zeros(found.block_bytes // 4, np.uint32)
    unit = 3 * 38 + 2 * 10 + 7
    words[:4] = 0xDEADBEEF, 5, unit, 1024
    words[4:10] = np.array([10_000, 13_000, 13_500], np.uint64).view("<u4")
    for warp in range(found.warps):
        words[10 + warp] = 2 * len(marks)
        for at, (name, is_end, since) in enumerate(marks):
            clock = start + warp + since
            place = 10 + found.warps + warp * 1024 // 4 // found.warps + 2 * at
            words[place : place + 2] = is_end << 31 | numbers[name] << 23 | clock >> 32, clock % 2**32
    (block,) = read_records(words.tobytes(), found.block_bytes, found.warps, range(found.warps), 36)
    assert (block.block, block.multiprocessor, block.start_ns, block.last_ns, block.end_ns) == (
        5,
        unit,
        10_000,
        13_000,
        13_500,
    )
    took = {(found.scopes[each.scope], each.warp): each.end - each.start for each in block.passages}
    assert took == {
        (name, warp): cycles for warp in range(4) for name, cycles in (("kernel", 300 - 3 * 36), ("load", 50 - 36))
    }
    results = Results(keeps_events=False, kind="HIP", devices={"0": {"arch": "gfx942"}})
    results.add(Launch(("add",), found.scopes, found.parents, found.warps, 0), [block])
    root, devices = results.tree()
    outer = root["children"][0]["children"][0]
    assert outer["frame"]["name"] == "kernel"
    assert (outer["metrics"]["cycles"], outer["metrics"]["device_type"]) == (4 * (300 - 3 * 36), "2")
    assert devices == {"HIP": {"0": {"arch": "gfx942"}}}
