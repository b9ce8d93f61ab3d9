"""Kernels of `slow_kernels` compiled by Triton for an H100, without one, in a profile.

Texts, lines, registers and shared memory are the compiler's; times and grids are made up: the GPU is always busy.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from bragg.analyze.compiled_kernels import CompiledKernels
from bragg.code import kernel_code
from bragg.code.kernel_code import with_kernel_code
from bragg.code.kernel_files import SIZES, attributes_of
from bragg.model import Profile
from bragg.model.kernels.compiled import CompiledKernel
from bragg.model.kernels.configurations import KernelTable
from tests.support.kept_listings import kept_listings
from tests.support.profiles import profile_from_text

H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "arch": "90",
    "num_sms": 132,
    "clock_khz": 1_980_000,
    "memory_clock_khz": 2_619_000,
    "bus_width_bits": 5120,
}
_TIME_NS = 100_000_000
_THREADS = 32
MANY_BLOCKS = 132 * 64


@dataclass(frozen=True)
class Variant:
    """One way to compile a kernel.

    Attributes:
        kernel: A function of `slow_kernels`.
        types: Of arguments by name; those that are not named are constants.
        constants: Values of constants by name.
        unaligned: Arguments that nothing is promised of.
        options: Of the compiler.
        grid: Blocks of a launch along x.
        grid_y: The same along y.
        grid_z: The same along z.
        sizes: Whole numbers that the first launch passes, by argument.
    """

    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    unaligned: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: int = MANY_BLOCKS
    grid_y: int = 1
    grid_z: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its frames; without warps and stages, which the texts tell."""
        return str(self.kernel.__name__)


def line_of(kernel: Any, mark: str = "slow") -> int:
    """The line of a kernel's source that carries a comment."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return next(number for number, line in enumerate(lines, first) if line.rstrip().endswith(f"# {mark}"))


def profile_of(*variants: Variant) -> Profile:
    """A profile in which each variant takes the same time."""
    plain = profile_from_text("\n".join(["root", "  step", *(f"    {each.name} 100ms x100 @0" for each in variants)]))
    total_ns = _TIME_NS * len(variants)
    compiled = {each.name: _compiled(_Key(each)) for each in variants}
    meta = {
        "attributes": {
            each.name: {**dict(attributes_of(compiled[each.name])), SIZES: _sizes_text(each)} for each in variants
        },
        "devices": [H100],
        "gpu_busy_ns": {"0": total_ns},
        "gpu_first_ns": 0,
        "gpu_last_ns": total_ns,
    }
    with patch.object(kernel_code, "disassemble_all", kept_listings):
        profile, _ = with_kernel_code(replace(plain, meta=meta))
    return replace(profile, kernels=_launches(profile, variants, compiled))


def _sizes_text(variant: Variant) -> str:
    return " ".join(f"{name}={size}" for name, size in variant.sizes.items())


def compiled_row(variant: Variant) -> CompiledKernel:
    """The row of a variant in the table of compiled kernels."""
    found = CompiledKernels(profile_of(variant)).of(variant.name)
    assert found is not None
    return found


class _Key:
    """A variant as a key of a cache: none of its parts hashes."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self._text = repr((variant.name, variant.types, variant.constants, variant.unaligned, variant.options))

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._text == other._text


@lru_cache(maxsize=64)
def _compiled(key: _Key) -> Any:
    variant = key.variant
    names = variant.kernel.arg_names
    signature = {name: variant.types.get(name, "constexpr") for name in names}
    promised = [name for name in names if signature[name] == "i32" or signature[name].startswith("*")]
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in promised if name not in variant.unaligned}
    constants = {(names.index(name),): value for name, value in variant.constants.items()}
    source = ASTSource(variant.kernel, signature, constants, attributes)
    # Triton 3.9 warns where fusion is left to it.
    options = {"enable_fp_fusion": True, **variant.options}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def _launches(profile: Profile, variants: tuple[Variant, ...], compiled: Mapping[str, Any]) -> KernelTable:
    frames = profile.tree.frames.name
    options = profile.run.kernel_options
    attributes = profile.run.attributes
    columns: dict[str, list[int]] = {name: [] for name in KernelTable.columns()}
    for each in variants:
        taken = options.table(attributes[each.name]["code"])
        row = dict.fromkeys(columns, 1)
        row |= {
            "frame": frames.index(each.name),
            "registers": taken.count("registers"),
            "static_shared_bytes": 0,
            "dynamic_shared_bytes": compiled[each.name].metadata.shared,
            "local_bytes_per_thread": taken.count("stack_bytes"),
            "grid_x": each.grid,
            "grid_y": each.grid_y,
            "grid_z": each.grid_z,
            "block_x": compiled[each.name].metadata.num_warps * _THREADS,
            "count": 100,
            "cluster_x": 0,
            "cluster_y": 0,
            "cluster_z": 0,
        }
        for name, value in row.items():
            columns[name].append(value)
    return KernelTable(**{name: np.array(values, np.int64) for name, values in columns.items()})
