"""Clocks in kernels that PyTorch generates, some of which it launches without Triton."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path
from types import SimpleNamespace

from bragg.record.hooks.torch import inductor
from bragg.record.instrument.tuning import follow_inductor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.instrument.chosen import Chosen


_RUNNER = "runner"
"""What the generated launcher of a kernel calls."""


def instrument_inductor(chosen: Chosen, heuristics: ModuleType) -> Callable[[], None]:
    """Give clocks to the generated kernels that get a launcher from now on and that are wanted.

    Args:
        chosen: The kernels of the recording.
        heuristics: The module that makes launchers.

    Returns:
        What undoes it.
    """

    def follow(result: Any, launcher: Any, name: str) -> None:
        variables = getattr(launcher, "__globals__", {})
        runner = variables.get(_RUNNER)
        if runner is None:
            return
        if result.kernel.__class__.__module__.startswith("triton."):
            chosen.rename(runner, name)
        elif chosen.wants(name, None):
            variables[_RUNNER] = _Runner(result, name, chosen)

    undo_tuning, undo_following = follow_inductor(heuristics), inductor.follow_launchers(follow)

    def undo() -> None:
        undo_following()
        undo_tuning()

    return undo


class _Runner:
    """Stands in place of the `run` of a kernel that PyTorch launches itself.

    It has no `__self__`: with that, PyTorch would take the kernel from behind it for its fastest launcher.
    """

    def __init__(self, result: Any, name: str, chosen: Chosen) -> None:
        self._kernel = result.kernel
        self._twins: dict[int, Any] = {}
        self._launch = chosen.undecided(lambda: _as_tritons(result), name, self._with)

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: int, *arguments: Any) -> Any:
        """Launch."""
        return self._launch(grid_x, grid_y, grid_z, stream, self._kernel.function, *arguments)

    def _with(self, grid_x: int, grid_y: int, grid_z: int, stream: int, function: int, *arguments: Any) -> Any:
        """Launch the kernel, or the one with clocks, which takes the same arguments."""
        kernel = self._kernel
        if function != kernel.function:
            kernel = self._twins.get(function)
            if kernel is None:
                kernel = self._twins[function] = copy(self._kernel)  # without its module, which is not the copy's
                kernel.function = function
        return kernel.run(grid_x, grid_y, grid_z, stream, *arguments)


def _as_tritons(result: Any) -> Any:
    """What Triton would know of the kernel: its PTX and what it was compiled with, from Triton's cache."""
    from torch._inductor.runtime.runtime_utils import triton_cache_dir, triton_hash_to_path_key

    kernel = result.kernel
    device = result.compile_meta.get("device") or 0
    files = Path(triton_cache_dir(device), triton_hash_to_path_key(kernel.hash))
    ptx, facts = files / f"{kernel.name}.ptx", files / f"{kernel.name}.json"
    if not ptx.exists() or not facts.exists():
        raise ValueError("PyTorch kept no PTX of it; TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 compiles it anew")
    return SimpleNamespace(
        asm={"ptx": ptx.read_text(encoding="utf-8")},
        metadata=SimpleNamespace(**json.loads(facts.read_text(encoding="utf-8"))),
        src=None,
    )
