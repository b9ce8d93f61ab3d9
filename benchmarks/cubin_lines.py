"""Time to read the source lines of a cubin of about 1 MB: no CUPTI, no GPU.

The cubin is made of many copies of a Triton kernel, by the ptxas that Triton brings along. `table`: the line table,
with inlined calls, as the native reader gives it. `instructions`: the place of every instruction, as profiles need it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import harness

SIZE_BYTES = 1 << 20
REPEATS = 9
KERNELS = Path(__file__).parents[1] / "tests" / "golden" / "cubins"
_FILES = re.compile(r"^\s*\.file.*$", re.MULTILINE)
# The names of inlined functions; ptxas makes the other sections itself.
_NAMES = re.compile(r"\t\.section\s+\.debug_str.*?\}", re.DOTALL)


def ptx_of_kernel() -> str:
    """PTX for sm_90 with the places of its instructions."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    sys.path.insert(0, str(KERNELS))
    kernels = import_module("kernels")
    signature = {"out": "*fp32", "x": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(kernels.softmax, signature, {(4,): 1024}, {})
    text: str = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    return text


def cubin_of(ptx: str, copies: int) -> bytes:
    """The kernel so many times, under different names, in one cubin."""
    from triton.backends.nvidia.compiler import get_ptxas

    head, _, rest = ptx.partition(".visible .entry")
    body, _, sections = rest.partition("\t.section")
    kernel = _FILES.sub("", ".visible .entry" + body)
    kernels = [re.sub(r"\bsoftmax", f"softmax{number}", kernel) for number in range(copies)]
    names = _NAMES.findall("\t.section" + sections)
    with tempfile.TemporaryDirectory() as directory:
        file, cubin = Path(directory, "many.ptx"), Path(directory, "many.cubin")
        file.write_text("\n".join([head, *_FILES.findall(body), *kernels, *names]))
        subprocess.run([get_ptxas(90).path, "-lineinfo", "--gpu-name=sm_90a", "-o", cubin, file], check=True)
        return cubin.read_bytes()


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    from bragg.code.cubin import Cubin
    from bragg.core import core

    ptx = ptx_of_kernel()
    few = 8
    image = cubin_of(ptx, few * SIZE_BYTES // len(cubin_of(ptx, few)))
    names = Cubin.of(image).tables["functions"]["name"]

    def all_instructions() -> int:
        cubin = Cubin.of(image)
        return sum(len(cubin.code(name, {}, "")) for name in names)

    n_instructions = all_instructions()
    rows = []
    for what, read in (("table", lambda: core.read_cubin(image)), ("instructions", all_instructions)):
        seconds = min(harness.seconds(read) for _ in range(REPEATS))
        row = {"what": what, "cubin_bytes": len(image), "functions": len(names), "instructions": n_instructions}
        cost = {"ms": round(1e3 * seconds, 2), "ns_per_instruction": round(1e9 * seconds / n_instructions)}
        rows.append({**row, **cost})
    harness.report("cubin_lines", rows, arguments.out)


if __name__ == "__main__":
    main()
