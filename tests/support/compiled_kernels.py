"""Kernels compiled by Triton for a Hopper GPU, without one, in a profile with their texts and with samples.

Which instructions have samples is made up; texts and places are the compiler's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from bragg.code.kernel_code import with_kernel_code
from bragg.code.kernel_files import attributes_of
from bragg.code.source_map import KernelCode, code_of_kernels
from bragg.model import Metric, MetricKind, Profile
from tests.support.profiles import profile_from_text
from tests.support.triton_kernels import matmul, softmax

_POINTERS = {"a": "*fp16", "b": "*fp16", "c": "*fp16"}
_SIZES = dict.fromkeys(("M", "N", "K", "am", "ak", "bk", "bn", "cm", "cn"), "i32")
MATMUL, SOFTMAX = "matmul<BM=128 BN=128 BK=64 w8 s3>", "softmax<BLOCK=1024 w4 s3>"
_TIMES = {MATMUL: "900us x3", SOFTMAX: "300us x6"}
# What warps wait for at an instruction, by how its name begins.
_STALLS = {
    "LDG": ("long_scoreboard", 90),
    "LDGSTS": ("lg_throttle", 40),
    "HGMMA": ("gmma", 160),
    "WARPGROUP": ("warpgroup_arrive", 60),
    "BAR": ("barrier", 45),
    "STG": ("drain", 25),
    "LDSM": ("short_scoreboard", 30),
    "MUFU": ("short_scoreboard", 20),
}


def compiled_profile(*, samples: bool = True) -> Profile:
    """A product of matrices and a softmax."""
    signature = {**_POINTERS, **_SIZES, "BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(9)}
    constants = {(12,): 128, (13,): 128, (14,): 64}
    one = ASTSource(matmul, signature, {**constants, (7,): 1, (9,): 1, (11,): 1}, aligned)
    signature = {"out": "*fp32", "x": "*fp32", "stride": "i32", "n": "i32", "BLOCK": "constexpr"}
    other = ASTSource(softmax, signature, {(4,): 1024}, {(index,): [["tt.divisibility", 16]] for index in range(3)})
    attributes = {
        name: dict(
            attributes_of(triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}))
        )
        for name, source, warps in ((MATMUL, one, 8), (SOFTMAX, other, 4))
    }
    lines = ["root", "  step", *(f"    {name} {time} @0" for name, time in _TIMES.items())]
    plain = profile_from_text("\n".join(lines))
    profile, _ = with_kernel_code(replace(plain, meta={"attributes": attributes}))
    return _sampled(profile, attributes) if samples else profile


def _sampled(profile: Profile, attributes: dict[str, dict[str, str]]) -> Profile:
    """With a node for each instruction that has samples."""
    codes = code_of_kernels(profile.sources)
    lines = ["root", "  step"]
    values: list[dict[str, int]] = [{}, {}]
    for name, time in _TIMES.items():
        lines.append(f"    {name} {time} @0")
        values.append({})
        for node, reason, count in _stalls(codes[attributes[name]["code"]]):
            lines.append(f"      {node} #line")
            values.append({"num_samples": count, f"stalled_{reason}": count})
    found = profile_from_text("\n".join(lines))
    names = {name: None for own in values for name in own}
    metrics = {
        name: Metric(name, "1", MetricKind.INCLUSIVE, np.array([own.get(name, 0) for own in values])) for name in names
    }
    return replace(found, meta=profile.meta, sources=profile.sources, metrics={**found.metrics, **metrics})


def _stalls(code: KernelCode) -> Iterable[tuple[str, str, int]]:
    for row, instruction in enumerate(code.instructions):
        words = [word for word in instruction.text.split() if not word.startswith("@")]
        known = [stall for opcode, stall in _STALLS.items() if words and words[0].split(".")[0] == opcode]
        if known or row % 7 == 0:
            reason, count = known[0] if known else ("wait", 1 + row % 5)
            yield f"+{instruction.offset_bytes:#x}", reason, count
