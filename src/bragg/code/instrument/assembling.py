"""PTX as machine code, by NVIDIA's ptxas, which Triton brings along, and what ptxas says of it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

_TARGET = re.compile(r"^\s*\.target\s+(sm_(\d+)\w*)", re.MULTILINE)
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SERIALIZED = re.compile(r"C75\d\d|instructions are serialized")
_THREADS = re.compile(r"^\.reqntid .*$", re.MULTILINE)
_LIMIT = re.compile(r"^\.maxnreg ", re.MULTILINE)
# The GPU hands them out by so many, for each thread.
_REGISTERS_AT_ONCE = 8
# From this architecture on Triton takes the newer one of two: from Hopper since Triton 3.9, from Blackwell before.
_FIRST_OF_NEWER = {True: 90, False: 100}


@dataclass(frozen=True)
class Binary:
    """A kernel as machine code.

    Attributes:
        cubin: The file.
        registers: Of a thread.
        stack_bytes: Of a thread.
        spill_bytes: Written to and read from local memory, by the places in the code that do.
        is_serialized: ptxas lets matrix products wait for each other that might overlap.
    """

    cubin: bytes
    registers: int
    stack_bytes: int
    spill_bytes: int
    is_serialized: bool


def target_of(ptx: str) -> str:
    """The architecture that a text is for: `sm_90a`.

    Raises:
        ValueError: It does not say.
    """
    if match := _TARGET.search(ptx):
        return match[1]
    raise ValueError("the text names no target")


def find_ptxas(triton: ModuleType, target: str, environ: Mapping[str, str]) -> str:
    """Path of the ptxas that Triton uses.

    Args:
        triton: The package.
        target: As in `target_of`.
        environ: May name another one, as Triton takes it.

    Raises:
        ValueError: There is none.
    """
    release = tuple(int(part) for part in triton.__version__.split(".")[:2])
    is_newer = int(re.sub(r"\D", "", target)) >= _FIRST_OF_NEWER[release >= (3, 9)]
    variables = (["TRITON_PTXAS_BLACKWELL_PATH"] if is_newer else []) + ["TRITON_PTXAS_PATH"]
    names = (["ptxas-blackwell"] if is_newer else []) + ["ptxas"]
    candidates = [environ[name] for name in variables if environ.get(name)]
    candidates += [f"{triton.__path__[0]}/backends/nvidia/bin/{name}" for name in names]
    for path in candidates:
        if os.access(path, os.X_OK):
            return path
    raise ValueError(f"there is no ptxas: {candidates[-1]}")


def assemble(ptxas: str, ptx: str, options: Sequence[str], limit_s: float) -> Binary:
    """Assemble a text.

    Args:
        ptxas: Path of the program.
        ptx: With its target.
        options: Beside the target.
        limit_s: Time that it may take.

    Raises:
        ValueError: ptxas refuses it, or takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="bragg-ptxas-") as directory:
        source, output = Path(directory, "kernel.ptx"), Path(directory, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [ptxas, "-v", "-lineinfo", *options, f"--gpu-name={target_of(ptx)}", str(source), "-o", str(output)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise ValueError(f"ptxas did not run: {error}") from error
        if done.returncode or not output.exists():
            told = next((line for line in done.stderr.splitlines() if "error" in line or "fatal" in line), "")
            raise ValueError(f"ptxas ended with {done.returncode}: {told}")
        registers, spills = _REGISTERS.search(done.stderr), _SPILLS.search(done.stderr)
        return Binary(
            output.read_bytes(),
            int(registers[1]) if registers else 0,
            int(spills[1]) if spills else 0,
            int(spills[2]) + int(spills[3]) if spills else 0,
            bool(_SERIALIZED.search(done.stderr)),
        )


def assemble_as(plain: Binary, ptxas: str, ptx: str, options: Sequence[str], limit_s: float) -> Binary:
    """Assemble a kernel's text to which something was added, so that its blocks have room on the GPU as before.

    It has as many registers as the kernel had, unless that makes it spill more.

    Args:
        plain: The kernel as it was.
        ptxas: Path of the program.
        ptx: The text.
        options: Beside the target.
        limit_s: Time that ptxas may take, twice.

    Raises:
        ValueError: ptxas refuses it, or takes too long.
    """
    registers = -(-plain.registers // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
    # A limit that changes no number still keeps the schedule nearer to the kernel's: 1.005 for 1.029 of its time on an
    # H100, for a product by pointers.
    try:
        found = assemble(ptxas, limited(ptx, registers), options, limit_s)
    except ValueError:  # on Blackwell, registers that do not suffice are an error
        return assemble(ptxas, ptx, options, limit_s)
    if found.spill_bytes <= plain.spill_bytes:
        return found
    free = assemble(ptxas, ptx, options, limit_s)
    return free if free.spill_bytes < found.spill_bytes else found


def limited(text: str, registers: int) -> str:
    """A kernel's text that may use so many registers of a thread; one that has a limit of its own stays as it is."""
    if _LIMIT.search(text):
        return text
    return _THREADS.sub(lambda line: f"{line[0]}\n.maxnreg {registers}", text, count=1)
