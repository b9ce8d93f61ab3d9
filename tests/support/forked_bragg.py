"""`python -m bragg`, forked from a process that has imported what `bragg check` and `bragg debug` import first.

Each command is a process of its own, with its own streams, directory, environment and end; it spares 0.5 s of CPU.
What a program of a test sees of the process, as its arguments, is that of `python -m bragg`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["forked_bragg"]

_FORKS = """
import json, os, runpy, sys, warnings
import bragg.cli.main, bragg.debug.host.patience, bragg.debug.session

request = {}
while line := sys.stdin.readline():
    request = json.loads(line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that NumPy has threads, which only wait
        child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, (name, flags) in enumerate(zip(("input", "output", "talk"), (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
    os.dup2(os.open(request[name], flags), number)
sys.stdin = sys.__stdin__ = open(0, closefd=False)
os.environ.clear()
os.environ.update(request["environment"])
os.chdir(request["directory"])
sys.path[0] = request["directory"]
sys.argv = ["bragg", *request["arguments"]]
sys.orig_argv = [sys.executable, "-m", "bragg", *request["arguments"]]
runpy.run_module("bragg", run_name="__main__", alter_sys=True)
"""


def forked_bragg(
    *arguments: str | Path, directory: Path | None = None, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """One command, until it has ended.

    Args:
        arguments: Behind `bragg`.
        directory: Where it runs; None: here.
        text: What it reads from stdin.
        variables: What its environment has beside that of the test.
    """
    words = list(map(str, arguments))
    with tempfile.TemporaryDirectory() as place:
        files = {name: Path(place, name) for name in ("input", "output", "talk")}
        for file in files.values():
            file.write_text(text if file.name == "input" else "")
        request = {
            **{name: str(file) for name, file in files.items()},
            "environment": {**os.environ, **variables},
            "directory": str(directory or Path.cwd()),
            "arguments": words,
        }
        forks = _forks()
        assert forks.stdin is not None
        assert forks.stdout is not None
        forks.stdin.write(json.dumps(request) + "\n")
        forks.stdin.flush()
        code = int(forks.stdout.readline())
        output, talk = (files[name].read_text() for name in ("output", "talk"))
    return subprocess.CompletedProcess(["bragg", *words], code, output, talk)


@functools.cache
def _forks() -> subprocess.Popen[str]:
    """The process that forks; it ends with this one."""
    forks = subprocess.Popen([sys.executable, "-c", _FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(forks.communicate)
    return forks
