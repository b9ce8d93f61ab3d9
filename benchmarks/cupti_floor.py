"""CUPTI's kernel records alone, thrown away: what any profiler that uses them must cost at least."""

from __future__ import annotations

import ctypes
import subprocess
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

__all__ = ["CuptiFloor"]

HERE = Path(__file__).parent


class CuptiFloor:
    """A contender that keeps nothing.

    Args:
        directory: For the library, which is compiled.
    """

    def __init__(self, directory: Path) -> None:
        self.library = ctypes.CDLL(str(build_floor(directory)))
        self.cupti = str(mapped_library("libcupti.so")).encode()

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Nothing."""
        return nullcontext()

    def attach(self) -> None:
        """Enable the records."""
        self._call("floor_attach", self.cupti)

    def detach(self) -> None:
        """Disable and flush."""
        self._call("floor_detach")

    def _call(self, function: str, *arguments: bytes) -> None:
        status = getattr(self.library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} failed with CUPTI result {status}")


def build_floor(directory: Path) -> Path:
    """Compile cupti_floor.cpp."""
    library = directory / "libcupti_floor.so"
    source, include = HERE / "cupti_floor.cpp", HERE.parent / "native"
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run(["c++", *flags, str(source), "-o", str(library), "-ldl"], check=True)
    return library


def mapped_library(prefix: str) -> Path:
    """The library of this process whose file name starts so; the framework's copy is the one that bragg uses too.

    Raises:
        RuntimeError: None is mapped.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(prefix):
            return path
    raise RuntimeError(f"no {prefix} is mapped: nothing has loaded CUPTI")
