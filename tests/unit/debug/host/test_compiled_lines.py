"""Lines of the program that lines of a generated kernel come from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from bragg.debug.host.compiled_lines import origins

PROGRAM = """import helion

@helion.kernel()
def copied(x, out):
    for tile in hl.tile(x.size(0)):
        row = x[tile, :]
        out[tile, :] = row * 2
"""
# The form of Helion 1.5.
KERNEL = """import triton

@triton.jit
def _helion_copied(x, out):
    first = 0
    # src[program.py:5]: for tile in hl.tile(x.size(0)):
    # src[program.py:6]:     row = x[tile, :]
    pid_0 = tl.program_id(0)
    for offset_1 in tl.range(0, 70, 16):
        # src[program.py:6]: row = x[tile, :]
        row = tl.load(x + pid_0)
    # src[program.py:5-7]: ...
    tl.store(out + pid_0, row * 2)
"""


def test_lines_that_helion_writes_above_its_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, kernel = tmp_path / "program.py", tmp_path / "kernel.py"
    program.write_text(PROGRAM)
    kernel.write_text(KERNEL)
    assert origins(str(kernel), 11) == ["program.py:6: row = x[tile, :]"]
    module = ModuleType("program")
    module.__file__ = str(program)
    monkeypatch.setitem(sys.modules, "program", module)
    found = {line: origins(str(kernel), line) for line in (5, 8, 9, 11, 13)}
    assert found == {
        5: [],
        8: [f"{program}:5: for tile in hl.tile(x.size(0)):"],
        9: [f"{program}:5: for tile in hl.tile(x.size(0)):"],
        11: [f"{program}:6: row = x[tile, :]"],
        13: [f"{program}:6: row = x[tile, :]"],
    }
