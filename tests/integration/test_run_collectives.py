"""Names of collectives, as PyTorch itself tells them: NCCL needs GPUs, so its debug info is made and pushed by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bragg.model import FrameKind
from tests.support.runs import Recorder, names_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

# PyTorch's own constructor lays the object out.
PROGRAM = """
    import ctypes
    import pathlib
    import sys

    import torch

    library = pathlib.Path(torch.__file__).parent / "lib"
    cpu, c10 = ctypes.CDLL(str(library / "libtorch_cpu.so")), ctypes.CDLL(str(library / "libc10.so"))
    text = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    name = f"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJ{text}S7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii"
    constructor = next((found for end in ("b", "") if (found := getattr(cpu, name + end, None))), None)
    if constructor is None or not hasattr(c10, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"):
        print("another PyTorch")
        sys.exit()

    def write(value, memory, offset):
        address = ctypes.addressof(memory) + offset
        kept.append(ctypes.create_string_buffer(value))
        begin = address + 16 if len(value) < 16 else ctypes.addressof(kept[-1])
        ctypes.memmove(begin, value, len(value) + 1)
        ctypes.c_void_p.from_address(address).value = begin
        ctypes.c_size_t.from_address(address + 8).value = len(value)

    kept = []
    pair, collective = ctypes.create_string_buffer(64), ctypes.create_string_buffer(32)
    write(b"a description that is not short", pair, 0)  # libstdc++ keeps members of a tuple in reverse
    write(b"0", pair, 32)
    write(b"allreduce", collective, 0)
    splits = [ctypes.create_string_buffer(24), ctypes.create_string_buffer(24)]
    info, count = ctypes.create_string_buffer(1024), ctypes.c_int64(4096)
    constructor(ctypes.byref(info), pair, 3, collective, count, count, 15, *splits, 0, 1, 8, 1)
    kind = ctypes.c_void_p.in_dll(c10, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE")
    shared = (ctypes.c_void_p * 2)(ctypes.addressof(info), None)
    push = c10._ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE
    push(kind, shared)
    with torch.autograd.profiler.record_function("record_param_comms"):
        torch.ones(4).abs()
    print("pushed")
"""


def test_a_collective_is_named_by_what_pytorch_says_of_it(tmp_path: Path) -> None:
    recorded = Recorder(tmp_path).program(PROGRAM, context="shadow", sample_interval_us=0)
    names = names_of(recorded.main, FrameKind.OPERATOR)
    if "aten::abs" not in names:
        pytest.skip("this PyTorch tells collectives in another way")
    assert "collective allreduce[4096 bf16, group 0 of 8]" in names
    assert "record_param_comms" not in names
