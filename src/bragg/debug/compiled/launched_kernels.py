"""Kernels that were launched, compiled for a GPU that need not be there when the program ends."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bragg.code.compiler_process import WITHIN_S, run_compiler
from bragg.code.kernel_files import GRIDS, SIZES, sizes_of
from bragg.debug.host.compiler import kernel_source, tile_dialect
from bragg.debug.host.launch import Launch
from bragg.debug.targets import Target

_SCRIPT = Path(__file__).with_name("compile_texts.py")


@dataclass(frozen=True)
class CompiledLaunch:
    """What became of a kernel.

    Attributes:
        key: `symbol/hash`; empty: it was not compiled.
        files: The file that describes what was compiled; the others are beside it.
        error: Why it was not compiled.
    """

    key: str = ""
    files: str = ""
    error: str = ""


@dataclass(frozen=True)
class _Kernel:
    """A kernel that waits for being compiled.

    Attributes:
        function: Name of its function.
        source: What Triton's compiler is given.
        options: Of the compiler.
        sizes: Whole numbers that its first launch passed.
        grids: How often it had each grid.
    """

    function: str
    source: Any
    options: dict[str, Any]
    sizes: str = ""
    grids: Counter[tuple[int, int, int]] = field(default_factory=Counter)


@dataclass
class LaunchedKernels:
    """The specializations that a program launched.

    Attributes:
        target: What they are compiled for.
        environ: Of the compiler.
        within_s: Time that all of them together may take.
    """

    target: Target
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    within_s: float = WITHIN_S
    _kernels: dict[str, _Kernel] = field(default_factory=dict)
    _refused: dict[str, CompiledLaunch] = field(default_factory=dict)

    def add(self, name: str, launch: Launch) -> None:
        """Keep what is to be compiled of a launch, once for each name, and count its grid."""
        if name in self._kernels:
            self._kernels[name].grids[launch.grid] += 1
        if name in self._kernels or name in self._refused:
            return
        try:
            source = kernel_source(launch)
        except Exception as error:  # noqa: BLE001 - of Triton's classes, which have no common one
            self._refused[name] = _failed(error)
            return
        options = {name: value for name, value in launch.options.items() if isinstance(value, (bool, int, float, str))}
        grids = Counter({launch.grid: 1})
        self._kernels[name] = _Kernel(launch.kernel, source, options, sizes_of(launch.arguments), grids)

    def launched(self, name: str) -> dict[str, str]:
        """How a kernel was launched, as attributes of its frame."""
        kernel = self._kernels[name]
        grids = (f"{'x'.join(map(str, grid))}={count}" for grid, count in kernel.grids.most_common())
        return {SIZES: kernel.sizes, GRIDS: " ".join(grids)}

    def compiled(self) -> dict[str, CompiledLaunch]:
        """What became of each kernel, by name. They are compiled in another process, which may end or hang."""
        found, texts = dict(self._refused), {}
        ends_s = time.monotonic() + self.within_s
        for name, kernel in self._kernels.items():
            try:
                texts[name] = tile_dialect(kernel.source, kernel.options, self.target)
            except Exception as error:  # noqa: BLE001 - the compiler is Triton's, and its errors have no common class
                found[name] = _failed(error)
        while texts:
            told, why = self._told(texts, ends_s - time.monotonic())
            found |= zip(list(texts), told, strict=False)
            if len(told) < len(texts):
                found[list(texts)[len(told)]] = CompiledLaunch(error=why)
            texts = {name: text for name, text in texts.items() if name not in found}
        return found

    def _told(self, texts: Mapping[str, str], within_s: float) -> tuple[list[CompiledLaunch], str]:
        """What one process tells of the first kernels, and why it tells nothing of the next one."""
        if within_s <= 0:
            return [], f"there was no time left: {self.within_s:g} s are for all kernels"
        with TemporaryDirectory() as directory:
            jobs = Path(directory, "jobs.json")
            jobs.write_text(json.dumps(list(self._jobs(texts, Path(directory)))), encoding="utf-8")
            compiler = run_compiler(_SCRIPT, [str(jobs)], self.environ, within_s=within_s)
        if compiler.status is None:
            return _read(compiler.output), f"the compiler was stopped after {within_s:.0f} s"
        why = compiler.last_error or "it said nothing"
        return _read(compiler.output), f"the compiler ended with {compiler.status}: {why}"

    def _jobs(self, texts: Mapping[str, str], directory: Path) -> Iterator[dict[str, Any]]:
        target = [self.target.backend, self.target.arch, self.target.warp_size]
        for number, (name, text) in enumerate(texts.items()):
            kernel, file = self._kernels[name], directory / f"{number}.ttir"
            file.write_text(text, encoding="utf-8")
            yield {"file": str(file), "name": kernel.function, "target": target, "options": kernel.options}


def _failed(error: Exception) -> CompiledLaunch:
    return CompiledLaunch(error=f"{type(error).__name__}: {error}")


def _read(output: str) -> list[CompiledLaunch]:
    """Whole lines; what Triton prints itself is passed over."""
    lines = output.splitlines(keepends=True)
    return [CompiledLaunch(**json.loads(line)) for line in lines if line.startswith("{") and line.endswith("}\n")]
