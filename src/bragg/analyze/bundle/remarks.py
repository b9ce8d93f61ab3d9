"""What Triton's compiler remarks about a kernel: profiles keep its code, so it is compiled again to hear them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from bragg.analyze.bundle.files import SCRIPT, Bundle
from bragg.errors import BackendUnavailable, NothingRecorded, TritonMissing

__all__ = ["Remark", "Remarks", "remarks_on"]

# A product of matrices takes about a second, an attention ten.
_WITHIN_S = 120.0
# Of what MLIR writes to standard error, which has lines of the source between them.
_DIAGNOSTIC = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d+):\d+: (?P<kind>remark|warning|note): (?P<text>.+)")
# Of the processes that bragg records.
_OWN_VARIABLES = "BRAGG_"


@dataclass(frozen=True)
class Remark:
    """Something that the compiler could not do, or did in a way that may be slow.

    Attributes:
        file: Of the source, as the compiler names it.
        line: From 1.
        text: What it says, with its notes.
    """

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Remarks:
    """All about one kernel.

    Attributes:
        triton: Version of the Triton that compiled it now.
        found: Each once, in the order in which they were made.
    """

    triton: str
    found: tuple[Remark, ...]


def remarks_on(bundle: Bundle, *, within_s: float = _WITHIN_S) -> Remarks:
    """Compile a kernel again, in another process, and keep what the compiler says of it.

    Args:
        bundle: The kernel; its target need not be in this machine.
        within_s: Time after which the compiler is stopped.

    Raises:
        NothingRecorded: The profile has no TTIR of it.
        TritonMissing: Triton is not installed.
        BackendUnavailable: This Triton does not compile it, or not in time.
    """
    if SCRIPT not in bundle.files:
        hint = "bragg run keeps that of Triton kernels"
        raise NothingRecorded(f"this profile has no TTIR of {bundle.kernel}", hint=hint)
    if find_spec("triton") is None:
        raise TritonMissing
    with TemporaryDirectory() as directory:
        bundle.write(Path(directory))
        return Remarks(version("triton"), tuple(dict.fromkeys(_remarks(_said(bundle.kernel, directory, within_s)))))


def _said(kernel: str, directory: str, within_s: float) -> str:
    """What the compiler writes to standard error, by whichever way it does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    search = os.pathsep.join(filter(None, sys.path))
    environ = {**kept, "PYTHONPATH": search, "TRITON_CACHE_DIR": f"{directory}/cache"}
    command = [sys.executable, f"{directory}/{SCRIPT}", "--compile-only"]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    compiler = subprocess.Popen(command, env=environ, stdout=null, stderr=pipe, start_new_session=True)
    try:
        _, output = compiler.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        os.killpg(compiler.pid, signal.SIGKILL)  # ptxas, which it started, too
        compiler.communicate()
        raise BackendUnavailable(f"compiling {kernel} again took longer than {within_s:.0f} s") from None
    said = output.decode(errors="replace")
    if compiler.returncode:
        why = next(reversed(said.strip().splitlines()), f"it ended with {compiler.returncode}")
        raise BackendUnavailable(f"Triton {version('triton')} does not compile {kernel}: {why}")
    return said


def _remarks(said: str) -> Iterator[Remark]:
    last: Remark | None = None
    for line in said.splitlines():
        told = _DIAGNOSTIC.fullmatch(line)
        if told is None:
            continue
        text = told["text"].removeprefix("Warning: ")
        if told["kind"] != "note":
            if last:
                yield last
            last = Remark(told["file"], int(told["line"]), text)
        elif last:
            last = replace(last, text=f"{last.text} {text}")
    if last:
        yield last
