"""Clocks in kernels that PyTorch launches itself; PyTorch's own launcher, with a driver that notes what it is told."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from bragg.record import RecordConfig
from bragg.record.hooks.torch import inductor as generated
from bragg.record.hooks.triton import kernel_names
from bragg.record.instrument import choice, chosen, inductor

triton = pytest.importorskip("triton")
heuristics = pytest.importorskip(generated.MODULE)
launchers = pytest.importorskip("torch._inductor.runtime.static_triton_launcher")

from tests.support.timed_kernels import compiled  # noqa: E402

PLAIN, CLOCKED = 7 << 20, 9 << 20
SIZE = 4096
COPY = compiled("copy")


class Driver:
    """What PyTorch's launcher in C++ is called with."""

    def __init__(self) -> None:
        self.launched: list[tuple[Any, ...]] = []

    def _load_kernel(self, path: str, *_: Any) -> tuple[int, int, int, int]:
        return PLAIN + 1, PLAIN, 32, 0

    def _launch_kernel(self, *arguments: Any) -> None:
        self.launched.append(arguments)

    def _unload_kernel(self, module: int) -> None:
        raise AssertionError(f"module {module} belongs to the kernel, which lives")


class Timed:
    """Stands for a kernel with clocks, all of whose launches have them."""

    made: list[Any]

    def __init__(self, kernel: Any, name: str, launch: Any, *_: Any) -> None:
        Timed.made.append((kernel, name))
        self._launch = launch

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *arguments: Any) -> Any:
        assert function == PLAIN
        return self._launch(x, y, z, stream, CLOCKED, *arguments)


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    Timed.made = []
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(chosen, "TimedKernel", Timed)
    monkeypatch.setattr(choice, "_chosen", WeakSet())
    monkeypatch.setattr(kernel_names, "core", SimpleNamespace(name_kernel=lambda *_: None))
    monkeypatch.setattr(kernel_names, "_owners", {})
    kernels = chosen.Chosen(RecordConfig(instrument="copy").options())
    undo = [generated.name_kernels(heuristics), inductor.instrument_inductor(kernels, heuristics)]
    yield
    for each in undo:
        each()


def static_result(tmp_path: Path, driver: Driver) -> Any:
    """A kernel of Triton in the hands of PyTorch, with the files that Triton leaves."""
    kernel = COPY
    from torch._inductor.runtime.runtime_utils import triton_hash_to_path_key

    directory = tmp_path / triton_hash_to_path_key(kernel.hash)
    directory.mkdir(exist_ok=True)
    for name, path in kernel.metadata_group.items():
        (directory / name).write_bytes(Path(path).read_bytes())
    kernel._cubin_path = str(directory / "copy.cubin")
    own = launchers.StaticallyLaunchedCudaKernel(kernel)
    own.C_impl = driver
    meta = {
        "signature": {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constants": {"BLOCK": 1024},
        "num_warps": 4,
        "num_stages": 3,
        "device": 0,
    }
    grid = {"grid_type": "FixedGrid", "fixed_grid": ["4", "1", "1"], "kernel_name": "copy"}
    return heuristics.StaticTritonCompileResult(own, triton.Config({"BLOCK": 1024}), meta, grid)


def test_a_kernel_that_pytorch_launches_has_clocks(hooked: None, tmp_path: Path) -> None:
    driver = Driver()
    result = static_result(tmp_path, driver)
    launcher = result.make_launcher()
    launcher(100, 200, SIZE, stream=3)
    launcher(100, 200, SIZE, stream=3)
    assert [(function, grid, stream) for function, *grid, _, _, _, _, stream in driver.launched] == [
        (CLOCKED, [4, 1, 1], 3)
    ] * 2
    assert driver.launched[0][-2][:3] == (100, 200, SIZE)
    ((kernel, name),) = Timed.made
    assert name.startswith("copy<BLOCK=1024 w4 s3 f32")
    assert kernel.asm["ptx"] == COPY.asm["ptx"]
    assert kernel.metadata.num_ctas == 1
    assert result.kernel.function == PLAIN
    pickle.dumps({**result.kernel.__getstate__(), "C_impl": None})  # PyTorch's caches keep it


def test_launches_that_compare_configurations_have_none(
    hooked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver()
    launcher = static_result(tmp_path, driver).make_launcher()
    heuristics.CachingAutotuner.bench(
        SimpleNamespace(
            custom_kernel=True,
            get_device_interface=lambda: SimpleNamespace(get_raw_stream=lambda _: 0, current_device=lambda: 0),
            copy_args_to_cpu_if_needed=lambda *_, **__: {},
            maybe_clone_args=lambda _, *arguments, **options: (arguments, options),
            reset_to_zero_args=lambda *_, **__: None,
            restore_args_from_cpu=lambda *_: None,
            inductor_meta={},
            device_props=SimpleNamespace(type="cpu"),
        ),
        launcher,
        100,
        200,
        SIZE,
    )
    assert driver.launched
    assert {function for function, *_ in driver.launched} == {PLAIN}
    launcher(100, 200, SIZE, stream=3)
    assert driver.launched[-1][0] == CLOCKED


def test_the_fastest_launcher_of_pytorch_does_not_take_the_kernel_from_behind(hooked: None, tmp_path: Path) -> None:
    launcher = static_result(tmp_path, Driver()).make_launcher()
    assert not hasattr(launcher.__globals__["runner"], "__self__")


def test_a_kernel_whose_text_was_not_kept_is_launched_as_it_is(
    hooked: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver()
    launcher = static_result(tmp_path, driver).make_launcher()
    for path in tmp_path.glob("*/*.ptx"):
        path.unlink()
    launcher(100, 200, SIZE, stream=3)
    assert [function for function, *_ in driver.launched] == [PLAIN]
    assert "has no clocks: PyTorch kept no PTX of it" in capsys.readouterr().err


def test_kernels_that_triton_launches_get_pytorchs_name(monkeypatch: pytest.MonkeyPatch, hooked: None) -> None:
    launched: list[Any] = []
    kernels = chosen.Chosen(RecordConfig(instrument="copy").options())
    runner = kernels.undecided(lambda: COPY, "copy<BLOCK=1024>", lambda *given: launched.append(given))
    kernels.rename(runner, "copy<BLOCK=1024 f32>")
    kernels.rename(print, "nothing")
    runner(1, 1, 1, 0, PLAIN)
    assert [name for _, name in Timed.made] == ["copy<BLOCK=1024 f32>"]
    assert launched == [(1, 1, 1, 0, CLOCKED)]
