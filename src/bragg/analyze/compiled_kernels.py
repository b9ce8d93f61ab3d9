"""The table of compiled kernels: what compilers made of each, and how it was launched."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain

from bragg.analyze.kernel_facts import Configuration, configurations_of
from bragg.analyze.occupancy import occupancy
from bragg.code.compiled.facts import facts_of
from bragg.code.compiled.tile_dataflow import grid_key
from bragg.code.kernel_files import GRIDS, SIZES
from bragg.code.source_map import KernelCode, code_of_kernels
from bragg.model import FrameKind, Profile
from bragg.model.kernels.compiled import CompiledKernel
from bragg.model.kernels.names import base_name, specialization

_SIZE = re.compile(r"(\w+)=(-?\d+)")
_GRID = re.compile(r"(\d+)x(\d+)x(\d+)=(\d+)")
_STAGES = re.compile(r"\bs(\d+)\b")


class CompiledKernels:
    """What is known of the kernels of a profile whose code it has; texts are read when a kernel is asked for.

    Args:
        profile: It.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._rows: dict[str, CompiledKernel] = {}

    def __len__(self) -> int:
        return len(self._names_of)

    def __iter__(self) -> Iterator[CompiledKernel]:
        return (self._row(key) for key in self._names_of)

    def of(self, name: str) -> CompiledKernel | None:
        """A kernel by the name of its frames; None: the profile does not have its code."""
        key = self._keys.get(name)
        return None if key is None else self._row(key)

    @property
    def names(self) -> Iterable[str]:
        """Names of the kernels whose code the profile has."""
        return self._keys

    def launches_for_target(self, name: str) -> tuple[Configuration, ...]:
        """How a kernel was launched that no GPU executed, the most frequent first, as its compiler configured it."""
        kernel = self._row(self._keys[name])
        return tuple(
            Configuration(
                count=count,
                grid=grid,
                block=(kernel.threads, 1, 1),
                cluster=None,
                registers=kernel.registers or 0,
                shared_bytes=(kernel.dynamic_shared_bytes or 0) + (kernel.static_shared_bytes or 0),
                local_bytes_per_thread=kernel.stack_bytes or 0,
            )
            for grid, count in self._grids(name)
        )

    def _grids(self, name: str) -> list[tuple[tuple[int, int, int], int]]:
        """Grids of a kernel that no GPU executed, and how often it had each."""
        noted = self._profile.run.attributes.get(name, {}).get(GRIDS, "")
        return [((int(x), int(y), int(z)), int(count)) for x, y, z, count in _GRID.findall(noted)]

    def key_of(self, name: str) -> str:
        """`symbol/hash` of one of `names`."""
        return self._keys[name]

    @cached_property
    def _codes(self) -> dict[str, KernelCode]:
        return code_of_kernels(self._profile.sources)

    @cached_property
    def _keys(self) -> dict[str, str]:
        frames, attributes = self._profile.tree.frames, self._profile.run.attributes
        by_symbol = {code.symbol: key for key, code in self._codes.items()}
        names = dict.fromkeys(frames.name[row] for row in (frames.kind == FrameKind.KERNEL).nonzero()[0].tolist())
        keys = {name: attributes.get(name, {}).get("code") or by_symbol.get(base_name(name)) for name in names}
        return {name: key for name, key in keys.items() if key in self._codes}

    @cached_property
    def _names_of(self) -> dict[str, list[str]]:
        """Names of kernels by key."""
        names: dict[str, list[str]] = defaultdict(list)
        for name, key in self._keys.items():
            names[key].append(name)
        return names

    @cached_property
    def _launches(self) -> dict[str, Configuration]:
        """The most frequent launch of each kernel by name."""
        frames = self._profile.tree.frames
        return {frames.name[row]: launches[0] for row, launches in configurations_of(self._profile).items()}

    def _row(self, key: str) -> CompiledKernel:
        if key not in self._rows:
            self._rows[key] = self._joined(facts_of(self._codes[key], self._sizes(key)), tuple(self._names_of[key]))
        return self._rows[key]

    def _sizes(self, key: str) -> dict[str, int]:
        """Whole numbers that a kernel's first launch passed, by argument, and programs of the most frequent one."""
        noted = (self._profile.run.attributes.get(name, {}).get(SIZES, "") for name in self._names_of[key])
        passed = {name: int(number) for name, number in _SIZE.findall(next(filter(None, noted), ""))}
        grids = (self._launches[name].grid for name in self._names_of[key] if name in self._launches)
        for_target = (grid for name in self._names_of[key] for grid, _ in self._grids(name))
        grid = next(chain(grids, for_target), ())
        return passed | {grid_key(axis): size for axis, size in zip("xyz", grid, strict=False)}

    def _joined(self, kernel: CompiledKernel, names: tuple[str, ...]) -> CompiledKernel:
        """With what the compiler was asked for and what was launched; measured values win."""
        options = self._profile.run.kernel_options.table(kernel.key)
        launch = next((self._launches[name] for name in names if name in self._launches), None)
        stages = _STAGES.search(specialization(names[0]))
        kernel = replace(
            kernel,
            names=names,
            num_warps=kernel.num_warps or options.integer("num_warps"),
            num_stages=options.integer("num_stages") or (int(stages[1]) if stages else None),
            num_ctas=kernel.num_ctas or options.integer("num_ctas"),
            max_registers=options.integer("maxnreg"),
            registers=launch.registers if launch else options.integer("registers"),
            # CUPTI 13 tells 0 B of kernels that spill (H100): what the binary says is first.
            stack_bytes=options.integer("stack_bytes") or (launch.local_bytes_per_thread if launch else None),
            static_shared_bytes=launch.static_shared_bytes if launch else None,
            dynamic_shared_bytes=launch.dynamic_shared_bytes if launch else options.integer("shared"),
        )
        if launch and launch.occupancy is not None:
            return replace(kernel, occupancy=launch.occupancy, occupancy_limit=launch.occupancy_limit)
        if None in (kernel.num_warps, kernel.registers, kernel.dynamic_shared_bytes):
            return kernel
        shared_bytes = (kernel.dynamic_shared_bytes or 0) + (kernel.static_shared_bytes or 0)
        share, limit = occupancy(kernel.arch, kernel.threads, kernel.registers or 0, shared_bytes)
        return replace(kernel, occupancy=share, occupancy_limit=limit)
