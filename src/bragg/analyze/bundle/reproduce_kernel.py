"""Compiles and times one Triton kernel alone, from the facts that lie beside this file: `python reproduce.py --help`.

A profile has the types of a kernel's arguments, not their values: each number is an option, and each pointer gets a
buffer of `--elements` elements. It needs Triton, and PyTorch with a GPU to time the kernel. What Triton's compiler
remarks about lines of the kernel is on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_POINTER = re.compile(r"!tt\.ptr<(\w+)>")
_NUMBER = re.compile(r"(?P<kind>[if])\d+|index")
_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i1": "bool",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
}


def main() -> None:
    """Compile the kernel, and time it."""
    facts: dict[str, Any] = json.loads((_HERE / "facts.json").read_text(encoding="utf-8"))
    options = _options(facts)
    kernel = _compiled(facts)
    asked = " ".join(f"{name}={value}" for name, value in _asked(facts).items())
    shared = _beside(kernel.metadata.shared, facts["dynamic_shared_bytes"])
    print(f"compiled for {facts['target']} with {asked}: {shared} B of shared memory")
    if not options.compile_only:
        _time(facts, kernel, options)


def _options(facts: dict[str, Any]) -> argparse.Namespace:
    grids = [launch["grid"] for launch in facts["launches"]]
    parser = argparse.ArgumentParser(description=f"Compile {facts['name']}, and time it alone.")
    parser.add_argument("--compile-only", action="store_true", help="do not run it: no GPU is needed")
    parser.add_argument("--elements", type=int, default=1 << 26, help="in the buffer of each pointer  [67108864]")
    parser.add_argument("--grid", type=int, nargs=3, default=grids[0] if grids else None, help="blocks, x y z")
    for argument in facts["arguments"]:
        if number := _NUMBER.fullmatch(argument["type"]):
            text = f"{argument['type']}, {argument['divisibility']} divides it"
            parser.add_argument(f"--arg-{argument['name']}", type=float if number["kind"] == "f" else int, help=text)
    options = parser.parse_args()
    missing = [each["name"] for each in facts["arguments"] if getattr(options, f"arg_{each['name']}", 0) is None]
    if missing and not options.compile_only:
        parser.error("the profile has no values: say " + ", ".join(f"--arg-{name}" for name in missing))
    if options.grid is None and not options.compile_only:
        parser.error("the profile has no grid: say --grid")
    return options


def _compiled(facts: dict[str, Any]) -> Any:
    # Remarks are made while it compiles: not where the cache has the kernel.
    os.environ |= {"MLIR_ENABLE_DIAGNOSTICS": "remarks", "TRITON_ALWAYS_COMPILE": "1"}
    try:
        import triton
    except ImportError:
        raise SystemExit("It is not compiled: Triton is not installed.") from None
    from triton.backends.compiler import GPUTarget

    backend, _, architecture = facts["target"].partition(":")
    is_number = architecture.isdigit()
    target = GPUTarget(backend, int(architecture) if is_number else architecture, 32 if backend == "cuda" else 64)
    return triton.compile(str(_HERE / "kernel.ttir"), target=target, options=_asked(facts))


def _asked(facts: dict[str, Any]) -> dict[str, int]:
    """What the compiler was asked for, in its own words."""
    names = {"num_warps": "num_warps", "num_stages": "num_stages", "num_ctas": "num_ctas", "max_registers": "maxnreg"}
    return {option: facts[name] for name, option in names.items() if facts[name]}


def _beside(own: int, recorded: int | None) -> str:
    return f"{own} (recorded: {'not known' if recorded is None else recorded})"


def _time(facts: dict[str, Any], kernel: Any, options: argparse.Namespace) -> None:
    try:
        import torch
    except ImportError:
        raise SystemExit("It is not timed: PyTorch is not installed.") from None
    if not torch.cuda.is_available():
        raise SystemExit("It is not timed: PyTorch finds no GPU here.")
    from triton.testing import do_bench

    values = []
    for argument in facts["arguments"]:
        if pointer := _POINTER.fullmatch(argument["type"]):
            dtype = getattr(torch, _TYPES[pointer[1]])
            values.append(torch.zeros(options.elements, dtype=dtype, device="cuda"))
        elif _NUMBER.fullmatch(argument["type"]):
            values.append(getattr(options, f"arg_{argument['name']}"))
        else:
            raise SystemExit(f"argument {argument['name']} is a {argument['type']}: make it here by hand")
    launch = kernel[tuple(options.grid)]
    took_ms = do_bench(lambda: launch(*values))
    print(f"{_beside(kernel.n_regs, facts['registers'])} registers of a thread, {kernel.n_spills} spilled")
    print(f"{took_ms * 1e3:.1f} us; in the profile {facts['mean_ns'] / 1e3:.1f} us")


if __name__ == "__main__":
    main()
