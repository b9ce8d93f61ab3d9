"""Machine code as text, by NVIDIA's nvdisasm, which toolkits and Triton bring along."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

Listing = Mapping[str, Mapping[int, str]]
"""Text of each instruction by function, which stands for its code section, and by offset in it."""

_NAME = "nvdisasm"
_MAX_AT_ONCE = 16
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")
_LABEL = re.compile(r"\s*(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")


def find_disassembler(environ: Mapping[str, str]) -> str | None:
    """Path of nvdisasm: on PATH, in the CUDA toolkit, or in Triton; None where there is none."""
    toolkits = [environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    places = [environ.get("PATH", ""), *(f"{toolkit}/bin" for toolkit in [*toolkits, "/usr/local/cuda"])]
    triton = find_spec("triton")  # is not imported by this
    for directory in (triton.submodule_search_locations or []) if triton else []:
        places.append(f"{directory}/backends/nvidia/bin")
    return shutil.which(_NAME, path=os.pathsep.join(places))


def disassemble_all(tool: str, cubins: Sequence[bytes], limit_s: float) -> list[Listing | str]:
    """The text of several cubins, or why there is none; those at the end have none when the time is up.

    Args:
        tool: Path of nvdisasm.
        cubins: What to disassemble: 0.2 to 0.5 s each, on all processors.
        limit_s: After this time none is begun.
    """
    until_s = time.monotonic() + limit_s

    def one(cubin: bytes) -> Listing | str:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return "disassembling hotter kernels took too long"
        try:
            return disassemble(tool, cubin, left_s + 1)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)

    with ThreadPoolExecutor(min(_MAX_AT_ONCE, os.cpu_count() or 1)) as pool:
        return list(pool.map(one, cubins))


def disassemble(tool: str, cubin: bytes, timeout_s: float) -> Listing:
    """The text of a cubin.

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
    return parse_listings(output.decode(errors="replace"))


def parse_listings(output: str) -> Listing:
    """What nvdisasm prints, with the offsets of branches in place of labels."""
    functions: dict[str, dict[int, str]] = defaultdict(dict)
    offsets: dict[str, int] = {}
    labels: list[str] = []
    function = ""
    for line in output.splitlines():
        if match := _SECTION.match(line):
            function = match[1]
        elif match := _LABEL.match(line):
            labels.append(match[1])
        elif match := _INSTRUCTION.match(line):
            offset = int(match[1], 16)
            offsets.update(dict.fromkeys(labels, offset))
            labels = []
            functions[function][offset] = f"{match[2]} ;"

    def with_offset(match: re.Match[str]) -> str:
        return hex(offsets[match[1]]) if match[1] in offsets else match[0]

    return {
        name: {offset: _TARGET.sub(with_offset, text) for offset, text in code.items()}
        for name, code in functions.items()
    }
