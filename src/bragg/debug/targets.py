"""The GPU that a kernel is checked for: floats of 8 bits differ between GPUs, and Triton refuses those that one lacks.

Source: `supported_fp8_dtypes` of the compilers for NVIDIA and AMD in Triton 3.4 to 3.9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bragg.errors import UsageError

__all__ = ["DEFAULT_TARGET", "Target", "target_named"]

_NVIDIA = frozenset({"fp8e5", "fp8e4b15"})
_NVIDIA_FROM_ADA = _NVIDIA | {"fp8e4nv"}
_AMD = frozenset({"fp8e4nv", "fp8e5", "fp8e5b16", "fp8e4b8"})


@dataclass(frozen=True)
class Target:
    """A kind of GPU.

    Attributes:
        name: As the user gives it.
        backend: Triton's word: `cuda` or `hip`.
        arch: Triton's word: 90, `gfx942`.
        warp_size: Threads of a warp.
        float8: Names of the floats of 8 bits that it has; None: whatever Triton knows.
    """

    name: str
    backend: str
    arch: int | str
    warp_size: int
    float8: frozenset[str] | None


def target_named(name: str) -> Target:
    """The target of a name: `sm_90`, `sm_100`, `gfx942` and the like, or `any`.

    Raises:
        UsageError: It is none of these.
    """
    if name == "any":
        return Target(name, "cuda", 90, 32, None)
    if match := re.fullmatch(r"sm_?(\d{2,3})a?", name):
        arch = int(match[1])
        return Target(name, "cuda", arch, 32, _NVIDIA if arch < 89 else _NVIDIA_FROM_ADA)
    if re.fullmatch(r"gfx\w{3,4}", name):
        return Target(name, "hip", name, 64 if name.startswith("gfx9") else 32, _AMD)
    raise UsageError(f"unknown target {name!r}", hint="Choose sm_90, sm_100, gfx942 or the like, or any")


DEFAULT_TARGET = "sm_90"
