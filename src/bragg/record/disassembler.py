"""Machine code as text, by NVIDIA's nvdisasm, which toolkits and Triton bring along."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

__all__ = ["disassemble", "find_disassembler"]

_NAME = "nvdisasm"
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")


def find_disassembler(environ: Mapping[str, str]) -> str | None:
    """Path of nvdisasm: on PATH, in the CUDA toolkit, or in Triton; None where there is none."""
    toolkits = [environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    places = [environ.get("PATH", ""), *(f"{toolkit}/bin" for toolkit in [*toolkits, "/usr/local/cuda"])]
    triton = find_spec("triton")  # is not imported by this
    for directory in (triton.submodule_search_locations or []) if triton else []:
        places.append(f"{directory}/backends/nvidia/bin")
    return shutil.which(_NAME, path=os.pathsep.join(places))


def disassemble(tool: str, cubin: bytes, timeout_s: float) -> dict[str, dict[int, str]]:
    """Text of each instruction by function, which stands for its code section, and by offset in it.

    Raises:
        OSError: The tool cannot be run.
        subprocess.SubprocessError: It failed, or took too long.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "kernel.cubin")
        file.write_bytes(cubin)
        # Without the analysis of data flow it takes two thirds of the time.
        command = [tool, "--no-dataflow", "--print-code", str(file)]
        output = subprocess.run(command, capture_output=True, check=True, timeout=timeout_s).stdout
    functions: dict[str, dict[int, str]] = defaultdict(dict)
    function = ""
    for line in output.decode(errors="replace").splitlines():
        if match := _SECTION.match(line):
            function = match[1]
        elif match := _INSTRUCTION.match(line):
            functions[function][int(match[1], 16)] = f"{match[2]} ;"
    return dict(functions)
