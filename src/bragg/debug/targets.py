"""The GPU that a kernel is checked for: floats of 8 bits differ between GPUs, and Triton refuses those that one lacks.

Source: `supported_fp8_dtypes` of the compilers for NVIDIA and AMD in Triton 3.4 to 3.9.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from bragg.errors import UsageError

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
        processors: Multiprocessors of its largest GPU; 0: not known.
        warps: That one of them holds at once.
        blocks: Programs that one of them holds at once.
    """

    name: str
    backend: str
    arch: int | str
    warp_size: int
    float8: frozenset[str] | None
    processors: int = 0
    warps: int = 0
    blocks: int = 0

    def resident(self, num_warps: int) -> int | None:
        """Programs that the GPU holds at once if they need few registers and little memory; None: not known."""
        if not self.processors:
            return None
        return self.processors * max(min(self.warps // num_warps, self.blocks), 1)

    @property
    def reduces_halves(self) -> bool:
        """Descriptors take the least and greatest of floats of 16 bits: they are the hardware's."""
        return self.float8 is None or (self.backend == "cuda" and int(self.arch) >= 90)

    def least_depth(self, bits: int) -> int:
        """Elements of so many bits that a `tl.dot` must sum over at least.

        Source: `min_dot_size` of the compilers for NVIDIA and AMD in Triton 3.4 to 3.9.
        """
        if self.backend == "hip" or self.float8 is None:
            return 1
        return 32 if bits == 8 else 16


# Source: CUDA C++ Programming Guide, compute capabilities of Volta and later.
_NVIDIA_ARCHITECTURES = frozenset({70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121})
# From Vega on. Source: LLVM, "User Guide for AMDGPU Backend", processors (as in LLVM of Triton 3.6).
_AMD_STEPPINGS = {
    "gfx90": "024689ac",
    "gfx94": "2",
    "gfx95": "0",
    "gfx101": "0123",
    "gfx103": "0123456",
    "gfx110": "0123",
    "gfx115": "0123",
    "gfx120": "01",
    "gfx125": "01",
}
_AMD_ARCHITECTURES = frozenset(family + step for family, steps in _AMD_STEPPINGS.items() for step in steps)
# Multiprocessors, warps and blocks of one. Source: CUDA C++ Programming Guide, "Technical Specifications per Compute
# Capability", and NVIDIA's white papers (A100, GA102, AD102, H100 SXM, B200, GB202); AMD's CDNA 3 white paper.
_SIZES: dict[int | str, tuple[int, int, int]] = {
    80: (108, 64, 32),
    86: (84, 48, 16),
    89: (142, 48, 24),
    90: (132, 64, 32),
    100: (148, 64, 32),
    120: (188, 48, 24),
    "gfx942": (304, 32, 32),
}


def target_named(name: str) -> Target:
    """The target of a name: `sm_90`, `sm_100`, `gfx942` and the like, or `any`.

    Raises:
        UsageError: It is none of these.
    """
    if name == "any":
        return Target(name, "cuda", 90, 32, None)
    if (match := re.fullmatch(r"sm_?(\d{2,3})a?", name)) and (arch := int(match[1])) in _NVIDIA_ARCHITECTURES:
        return Target(name, "cuda", arch, 32, _NVIDIA if arch < 89 else _NVIDIA_FROM_ADA, *_size(arch))
    if name in _AMD_ARCHITECTURES:
        return Target(name, "hip", name, 64 if name.startswith("gfx9") else 32, _AMD, *_size(name))
    known = [*(f"sm_{arch}" for arch in _NVIDIA_ARCHITECTURES), *_AMD_ARCHITECTURES]
    nearest = difflib.get_close_matches(name, sorted(known)) or ["sm_90", "sm_100", "gfx942"]
    raise UsageError(f"unknown target {name!r}", hint=f"Choose {', '.join(nearest)} or the like, or any")


def _size(arch: int | str) -> tuple[int, int, int]:
    return _SIZES.get(arch, (0, 0, 0))


DEFAULT_TARGET = "sm_90"
