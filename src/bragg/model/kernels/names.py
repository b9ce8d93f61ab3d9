"""Names of kernels that carry their specialization: `matmul<BM=128 BN=256 BK=64 w8 s3 bf16>`.

Names that programs and compilers chose are whole, whatever brackets they have.
"""

from __future__ import annotations

import re
from functools import lru_cache

# What every specialization says, warps and stages, or a hash of what there was no room for.
_SPECIALIZED = re.compile(
    r"(?P<base>[\w.$-]+)<(?P<specialization>(?:[^<>]* )?(?:w\d+ s\d+(?: [^<>]*)?|#[0-9a-f]{4,}))>"
)

# "32x64 f32", "()", "...": what the recorder writes of a tensor.
_TENSOR = r"(?:\d+(?:x\d+)*(?:x\.\.\.)?|\(\))(?: [^\],]+)?|\.\.\."
_SHAPED = re.compile(rf"(?P<operator>[\w.:]+)\[(?:{_TENSOR})(?:, (?:{_TENSOR}))*\]")


def base_name(name: str) -> str:
    """The kernel that a name is a specialization of, without what the recorder added; others come back unchanged."""
    match = _SPECIALIZED.fullmatch(name)
    return match["base"] if match else name


@lru_cache(maxsize=1 << 16)  # each rule asks for all names of a profile
def operator_name(name: str) -> str:
    """What stands before the shapes of an operator: `aten::mm` of `aten::mm[2x2 f32, 2x2 f32]`."""
    match = _SHAPED.fullmatch(name)
    return match["operator"] if match else name


def specialization(name: str) -> str:
    """What the recorder put between the brackets; empty for names without a specialization."""
    match = _SPECIALIZED.fullmatch(name)
    return match["specialization"] if match else ""


def is_specialized(name: str) -> bool:
    """Whether the recorder gave this name to a specialization; templates of C++ look similar."""
    return _SPECIALIZED.fullmatch(name) is not None
