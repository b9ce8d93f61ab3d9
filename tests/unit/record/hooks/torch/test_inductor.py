from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bragg.record.hooks.torch import inductor
from bragg.record.hooks.triton import kernel_names as triton

pytest.importorskip("triton")
heuristics = pytest.importorskip(inductor.MODULE)

KERNEL = "triton_poi_fused_add_relu_0"
PROGRAM = f"""\
AsyncCompile = async_compile = object()


# kernel path: /tmp/torchinductor/ab/cab.py
# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add, aten.relu]
# Source node to ATen node mapping:
#   x => add
{KERNEL} = async_compile.triton('{KERNEL}', '''
import triton
''', device_str='cuda')


# kernel path: /tmp/torchinductor/de/cde.py
other = async_compile.triton('other', '''
'''
"""


class Kernel:
    """What PyTorch keeps of a kernel that it launches itself."""

    name = KERNEL
    hash = "0123456789"
    arg_names = ("in_ptr0", "out_ptr0", "xnumel", "XBLOCK")
    declared_constexprs = (3,)
    function: int | None = None

    def load_kernel(self, device: int) -> None:
        self.function = 1 << 20


class Result(heuristics.StaticTritonCompileResult):  # type: ignore[misc,name-defined]
    """A compiled kernel that gets its launcher without a GPU."""

    def make_launcher(self) -> Any:
        self.kernel.load_kernel(0)
        return lambda: None


META = {
    "signature": {"in_ptr0": "*fp32", "out_ptr0": "*bf16", "xnumel": "i32", "XBLOCK": "constexpr"},
    "constants": {"XBLOCK": 256},
    "configs": [{(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}],
    "num_warps": 4,
    "num_stages": 1,
}


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """What kernels were called while the hook was installed."""
    names: list[tuple[Any, ...]] = []
    monkeypatch.setattr(heuristics, "StaticTritonCompileResult", Result)
    monkeypatch.setattr(triton, "core", type("Core", (), {"name_kernel": lambda self, *given: names.append(given)})())
    monkeypatch.setattr(triton, "_owners", {})
    undo = inductor.name_kernels(heuristics)
    yield names
    undo()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def result() -> Result:
    return Result(Kernel(), None, META, {"kernel_name": KERNEL})


def run_module(path: Path) -> ModuleType:
    """As PyTorch runs a program that it generated, which knows its kernels."""
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update({"AsyncCompile": object(), KERNEL: object()})
    return module


def test_a_kernel_is_named_when_it_gets_its_launcher(named: list[tuple[Any, ...]]) -> None:
    assert callable(result().make_launcher())
    assert named == [(1 << 20, f"{KERNEL}<XBLOCK=256 w4 s1 f32 bf16 !16:xnumel>", KERNEL, ())]


def test_a_kernel_that_was_launched_before_is_named_at_once(named: list[tuple[Any, ...]]) -> None:
    earlier = result()
    earlier.kernel.load_kernel(0)
    inductor.name_kernels(heuristics)()
    assert [name for _, name, *_ in named] == [f"{KERNEL}<XBLOCK=256 w4 s1 f32 bf16 !16:xnumel>"]


def test_the_operators_are_those_of_the_program_that_runs(named: list[tuple[Any, ...]], program: Path) -> None:
    module = run_module(program)
    del vars(module)[KERNEL]  # the name is given when its compilation has returned
    vars(module)["result"] = result()
    exec("result.make_launcher()", vars(module))
    assert named[0][3] == (("source nodes", "x, y"), ("ATen operators", "aten.add, aten.relu"))


def test_the_operators_of_a_program_that_has_run_are_found(
    named: list[tuple[Any, ...]], program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "generated", run_module(program))
    result().make_launcher()
    assert dict(named[0][3])["source nodes"] == "x, y"
    monkeypatch.setitem(sys.modules, "generated_too", run_module(program))
    result().make_launcher()
    assert named[1][3] == ()


def test_the_files_of_a_kernel_that_pytorch_launches_itself_are_found_in_the_cache(
    named: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime.cache import get_cache_manager

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    cache = get_cache_manager(Kernel.hash)
    description = cache.put("{}", f"{KERNEL}.json", binary=False)
    cache.put_group(f"{KERNEL}.json", {f"{KERNEL}.json": description})
    result().make_launcher()
    assert named[0][3] == (("code", f"{KERNEL}/01234567"), ("code_files", description))


def test_kernels_without_a_known_origin_are_left_out(program: Path) -> None:
    assert list(inductor.origins_in(str(program))) == [KERNEL]


def test_undoing_leaves_the_classes_as_they_were() -> None:
    before = [heuristics.StaticTritonCompileResult.make_launcher, heuristics.TritonCompileResult.make_launcher]
    undo = inductor.name_kernels(heuristics)
    assert heuristics.TritonCompileResult.make_launcher is not before[1]
    undo()
    after = [heuristics.StaticTritonCompileResult.make_launcher, heuristics.TritonCompileResult.make_launcher]
    assert after == before
