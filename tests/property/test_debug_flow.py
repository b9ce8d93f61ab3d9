"""Programs of random branches, loops and jumps do together what each of them does alone in Python."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bragg.debug

pytest.importorskip("triton")

PROGRAMS = 9
HEAD = """import triton
import triton.language as tl


@triton.jit
def kernel(out):
    pid = tl.program_id(0)
    a = pid
    b = 3
    c = pid * 5 & 7
"""
TAIL = "    tl.store(out + pid, a + b * 64 + c * 4096)\n"
_FILES = itertools.count()

names = st.sampled_from("abc")
values = st.builds(
    lambda x, op, y: f"({x} {op} {y}) & 31", names, st.sampled_from("+-*"), st.sampled_from(["a", "b", "7"])
)
tests = st.builds(
    lambda x, op, y, more: f"{x} {op} {y}{more}",
    names,
    st.sampled_from(["<", "==", "!=", ">="]),
    st.sampled_from(["a", "b", "c", "4", "9"]),
    st.sampled_from(["", " and pid > 2", " or c == 1", " and not (b < 5)"]),
)


@st.composite
def blocks(draw: Any, depth: int, in_loop: bool) -> list[str]:
    """Lines of one block, without its indent."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["assign", "assign"] + ["if", "if", "for", "while", "choice"] * (depth > 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "assign":
            lines.append(f"{draw(names)} = {draw(values)}")
        elif kind == "choice":
            lines.append(f"{draw(names)} = a if {draw(tests)} else {draw(values)}")
        elif kind == "if":
            lines += [f"if {draw(tests)}:", *indented(draw(blocks(depth - 1, in_loop)))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(blocks(depth - 1, in_loop)))]
        elif kind == "for":
            limit = draw(st.sampled_from(["3", "pid", "b & 3"]))
            lines += [f"for i{depth} in range({limit}):", *indented(draw(blocks(depth - 1, True)))]
        else:
            counter = f"w{depth}"
            body = [f"{counter} += 1", *draw(blocks(depth - 1, True))]
            lines += [f"{counter} = 0", f"while {counter} < (c & 3) and ({draw(tests)}):", *indented(body)]
    jumps = ["return"] + ["break", "continue"] * in_loop
    if depth < 3 and draw(st.integers(0, 3)) == 0:
        jump = draw(st.sampled_from(jumps))
        lines += ["tl.store(out + pid, a * 100 + 7)", "return"] if jump == "return" else [jump]
    return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def alone(source: str) -> list[int]:
    """What each program stores, executed by Python."""
    stored = [0] * PROGRAMS
    body = source.replace("import triton\nimport triton.language as tl\n", "").replace("@triton.jit\n", "")
    for pid in range(PROGRAMS):
        tl = SimpleNamespace(program_id=lambda axis, pid=pid: pid, store=stored.__setitem__)
        space: dict[str, Any] = {"tl": tl}
        exec(body, space)
        space["kernel"](0)
    return stored


def together(source: str, folder: Path) -> list[int]:
    path = folder / f"kernel_{next(_FILES)}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = np.zeros(PROGRAMS, np.int32)
    bragg.debug.interpret(module.kernel)[(PROGRAMS,)](out)
    return [int(value) for value in out]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(lines=blocks(3, False))
def test_programs_part_and_meet_as_if_alone(lines: list[str], tmp_path: Path) -> None:
    source = HEAD + "\n".join(indented(lines)) + "\n" + TAIL
    assert together(source, tmp_path) == alone(source)
