from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bragg.code.sass.disassembler import disassemble, disassemble_all, find_disassembler

OUTPUT = r"""
	.headerflags	@"EF_CUDA_SM90"
//--------------------- .text.softmax --------------------------
	.section	.text.softmax,"ax",@progbits
softmax:
.text.softmax:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P6 LDG.E R14, desc[UR6][R4.64] ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
	.section	.text.apart,"ax",@progbits
        /*0000*/                   NOP;
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_each_instruction_of_each_function_has_its_text(tmp_path: Path) -> None:
    (tmp_path / "output").write_text(OUTPUT)
    tool = program(tmp_path / "nvdisasm", f'test -s "$3" && cat {tmp_path}/output')
    assert disassemble(str(tool), b"cubin", timeout_s=10) == {
        "softmax": {0: "LDC R1, c[0x0][0x28] ;", 16: "@!P6 LDG.E R14, desc[UR6][R4.64] ;", 32: "BRA 0x20 ;"},
        "apart": {0: "NOP ;"},
    }


def test_a_tool_that_fails_or_hangs_is_told(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        disassemble(str(program(tmp_path / "fails", "exit 3")), b"", timeout_s=10)
    with pytest.raises(subprocess.TimeoutExpired):
        disassemble(str(program(tmp_path / "hangs", "exec sleep 60")), b"", timeout_s=0.1)


def test_the_tool_on_path_is_taken_before_that_of_the_toolkit(tmp_path: Path) -> None:
    first = program(tmp_path / "bin" / "nvdisasm", "")
    second = program(tmp_path / "cuda" / "bin" / "nvdisasm", "")
    environ = {"PATH": str(first.parent), "CUDA_HOME": str(tmp_path / "cuda")}
    assert find_disassembler(environ) == str(first)
    assert find_disassembler({**environ, "PATH": str(tmp_path)}) == str(second)


def test_all_cubins_are_disassembled_in_order_until_the_time_is_up(tmp_path: Path) -> None:
    tool = str(program(tmp_path / "nvdisasm", 'echo ".section .text.$(cat "$3")"; echo "/*0000*/ NOP;"'))
    assert disassemble_all(tool, [b"first", b"second"], limit_s=60) == [
        {"first": {0: "NOP ;"}},
        {"second": {0: "NOP ;"}},
    ]
    assert disassemble_all(tool, [b"first"], limit_s=0) == ["disassembling hotter kernels took too long"]
    (reason,) = disassemble_all(str(tmp_path / "missing"), [b"first"], limit_s=60)
    assert "No such file" in str(reason)
