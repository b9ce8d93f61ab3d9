"""What native frames cost at each launch, on the fake driver: no GPU needed.

A C++ program launches from 25 and 30 calls below 20 Python functions, recorded with each context in turn. Bursts are
short and their smallest time counts, so that what else the machine does is left out. Also the time to read the symbols
of the largest libraries that are installed with PyTorch. Build the fakes with `make native-test`.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import harness

LAUNCHES = 300
ROUNDS = 100
PYTHON_DEPTH = 20
HERE = Path(__file__).parent


def build(directory: Path) -> ctypes.CDLL:
    """Compile and load the program."""
    library = directory / "libnative_frames.so"
    source = HERE / "native_frames.cpp"
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC"]
    subprocess.run(["c++", *flags, str(source), "-o", str(library), "-ldl"], check=True)
    program = ctypes.CDLL(str(library))
    program.launch_deeply.restype = ctypes.c_double
    return program


def below(depth: int, function: Callable[[], float]) -> float:
    """What the function returns when so many Python functions call each other around it."""
    return below(depth - 1, function) if depth else function()


def cost_of_launches(directory: Path) -> dict[str, float]:
    """The smallest ns for a launch with each context, and without recording."""
    import bragg
    from bragg.record.config import Context
    from memory_growth import FakeGpu

    gpu, program = FakeGpu(), build(directory)
    smallest: dict[str, float] = {}
    for number in range(10):
        for context in (None, *get_args(Context)):
            output = str(directory / f"{number}.bragg")
            session = context and bragg.start(output, backend="cuda", context=context, force=True)
            bursts = [
                below(PYTHON_DEPTH, lambda: float(program.launch_deeply(gpu.kernel, LAUNCHES)))
                for _ in range(ROUNDS // 10)
            ]
            if session:
                bragg.stop(session)
            name = context or "not recorded"
            smallest[name] = min(smallest.get(name, float("inf")), *bursts)
    return smallest


def cost_of_names() -> dict[str, float]:
    """Seconds to read the symbols of PyTorch's libraries, without what the disk takes."""
    from bragg.code.elf_symbols import ElfSymbols

    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    libraries = sorted((Path(found.origin).parent / "lib").glob("libtorch*.so"))
    for library in libraries:
        ElfSymbols.read(library)
    return {library.name: harness.seconds(partial(ElfSymbols.read, library)) for library in libraries}


def main() -> None:
    """Print what was measured; see `--help`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--measure", action="store_true", help="measure in this process")
    arguments = parser.parse_args()
    if arguments.measure:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps({"launch": cost_of_launches(Path(directory)), "names": cost_of_names()}))
        return
    os.environ |= {"LD_LIBRARY_PATH": str(harness.FAKES), "BRAGG_CUPTI_DIR": str(harness.FAKES)}
    harness.report("native_frames", rows(harness.in_child([__file__, "--measure"], timeout_s=120)), arguments.out)


def rows(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each context and each library."""
    if "error" in measured:
        return [measured]
    launches = [{"what": f"launch, {name}", "ns": round(ns)} for name, ns in measured["launch"].items()]
    names = [{"what": f"symbols of {name}", "s": round(s, 3)} for name, s in measured["names"].items() if s > 0.005]
    return [*launches, *names]


if __name__ == "__main__":
    main()
