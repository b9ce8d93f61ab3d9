"""Programs that compile kernels, each in a process of its own: a compiler may end its process, or never end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WITHIN_S = 120.0
"""Enough for all kernels of a usual program: a product of matrices takes about a second, an attention ten."""

# Of the processes that bragg records.
_OWN_VARIABLES = "BRAGG_"


@dataclass(frozen=True)
class CompilerProcess:
    """A process that has ended.

    Attributes:
        status: That it ended with; None: it was stopped when its time was over.
        output: What it wrote to standard output.
        errors: What it wrote to standard error.
    """

    status: int | None
    output: str
    errors: str

    @property
    def last_error(self) -> str:
        """The last line of its errors; empty if it wrote none."""
        return next(reversed(self.errors.strip().splitlines()), "")


def run_compiler(
    script: Path, arguments: Sequence[str], environ: Mapping[str, str], *, within_s: float
) -> CompilerProcess:
    """Run a script of Python that compiles, with the modules of this process, and unrecorded.

    Args:
        script: What is run.
        arguments: Its arguments.
        environ: Its environment, from which variables of recordings are left out.
        within_s: Time after which it is stopped, with all processes that it started.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_OWN_VARIABLES)}
    compiler = subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    status: int | None = None
    try:
        output, errors = compiler.communicate(timeout=within_s)
        status = compiler.returncode
    except subprocess.TimeoutExpired:
        os.killpg(compiler.pid, signal.SIGKILL)  # ptxas, which it started, too
        output, errors = compiler.communicate()
    return CompilerProcess(status, output.decode(errors="replace"), errors.decode(errors="replace"))
