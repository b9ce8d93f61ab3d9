"""What Triton's compiler remarks about a kernel: profiles keep its code, so it is compiled again to hear them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from bragg.analyze.bundle.files import SCRIPT, Bundle
from bragg.code.compiler_process import WITHIN_S, run_compiler
from bragg.errors import BackendUnavailable, NothingRecorded, TritonMissing

# Of what MLIR writes to standard error, which has lines of the source between them.
_DIAGNOSTIC = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d+):\d+: (?P<kind>remark|warning|note): (?P<text>.+)")


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


def remarks_on(bundle: Bundle, *, within_s: float = WITHIN_S) -> Remarks:
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
    environ = {**os.environ, "TRITON_CACHE_DIR": f"{directory}/cache"}
    compiler = run_compiler(Path(directory, SCRIPT), ["--compile-only"], environ, within_s=within_s)
    if compiler.status is None:
        raise BackendUnavailable(f"compiling {kernel} again took longer than {within_s:.0f} s")
    if compiler.status:
        why = compiler.last_error or f"it ended with {compiler.status}"
        raise BackendUnavailable(f"Triton {version('triton')} does not compile {kernel}: {why}")
    return compiler.errors


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
