"""The texts of Triton's kernels at each stage, from the files that its compiler wrote, brought into the profile.

While the program runs, only the place of these files is noted (`kernel_files`): they are read when the profile is made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import SubprocessError

from bragg.model import FrameKind, Profile
from bragg.model.sass_listing import Instruction, format_listing
from bragg.model.source_map import Stage, source_name
from bragg.model.source_place import is_library, name_functions
from bragg.record.cubin import Cubin
from bragg.record.disassembler import disassemble, find_disassembler
from bragg.record.kernel_files import CODE, FILES

__all__ = ["with_kernel_code"]

# nvdisasm takes 0.2 to 0.5 s for a kernel.
_DISASSEMBLY_S = 5.0
_MAX_KERNELS = 200
_MAX_TEXT_BYTES = 4 << 20
_MAX_BYTES = 64 << 20


def with_kernel_code(profile: Profile, environ: Mapping[str, str] = os.environ) -> Profile:
    """The profile with the texts of its Triton kernels, hottest first where there are too many.

    `meta["kernel_code"]` says of each kernel what is missing, and why.
    """
    noted = list(_noted_kernels(profile))
    if not noted:
        return profile
    collector = _Collector(find_disassembler(environ))
    for key, files in noted:
        collector.add(key, Path(files))
    return replace(
        profile,
        sources={**profile.sources, **collector.texts},
        meta={**profile.meta, "kernel_code": collector.missing},
    )


def _noted_kernels(profile: Profile) -> Iterator[tuple[str, str]]:
    """Key and files of each kernel that was noted, the one with most GPU time first."""
    frames = profile.tree.frames
    time_of = dict.fromkeys(frames.name, 0)
    if "gpu_time" in profile.metrics:
        for node in (profile.tree.kind == FrameKind.KERNEL).nonzero()[0].tolist():
            time_of[frames.name[profile.tree.frame[node]]] += int(profile.own("gpu_time")[node])
    noted = profile.meta.get("attributes", {})
    for name in sorted(noted, key=lambda name: -time_of.get(name, 0)):
        if CODE in noted[name] and FILES in noted[name]:
            yield noted[name][CODE], noted[name][FILES]


@dataclass
class _Collector:
    """Texts that were read so far.

    Attributes:
        disassembler: Path of nvdisasm; None where there is none.
        texts: By name in the profile.
        missing: What is not there and why, by kernel.
        keys: Kernels that were looked at.
    """

    disassembler: str | None
    texts: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    _size_bytes: int = 0
    _disassembling_s: float = 0.0

    def add(self, key: str, metadata: Path) -> None:
        """Read the files of a kernel; `metadata` is the one that ends in `.json`."""
        if key in self.keys:
            return
        self.keys.add(key)
        if len(self.keys) > _MAX_KERNELS:
            self.missing[key] = f"only the {_MAX_KERNELS} kernels with most GPU time are kept"
            return
        try:
            symbol = str(json.loads(metadata.read_text())["name"])
            for stage in (Stage.TTIR, Stage.TTGIR, Stage.PTX):
                file = metadata.with_suffix(f".{stage.value}")
                if file.exists():  # Gluon has no TTIR
                    self._put(source_name(key, stage), file.read_text())
            self._add_machine_code(key, symbol, metadata.with_suffix(".cubin").read_bytes())
        except (OSError, ValueError, KeyError) as error:
            self.missing[key] = f"its files could not be read: {error}"

    def _add_machine_code(self, key: str, symbol: str, image: bytes) -> None:
        cubin = Cubin.of(image)
        texts = self._disassemble(key, symbol, image)
        code = cubin.code(symbol, texts, self.texts.get(source_name(key, Stage.PTX), ""))
        files = {place.file for instruction in code for place in instruction.chain if not is_library(place.file)}
        for file in sorted(files - self.texts.keys()):
            self._add_source(key, file)
        self._put(source_name(key, Stage.SASS), format_listing(self._with_functions(code)))

    def _with_functions(self, code: list[Instruction]) -> list[Instruction]:
        chains = name_functions((instruction.chain for instruction in code), self.texts)
        return [instruction._replace(chain=chain) for instruction, chain in zip(code, chains, strict=True)]

    def _add_source(self, key: str, file: str) -> None:
        try:
            self._put(file, Path(file).read_text())
        except (OSError, ValueError) as error:
            self.missing.setdefault(key, f"its source could not be read: {error}")

    def _disassemble(self, key: str, symbol: str, image: bytes) -> Mapping[int, str]:
        """Text of the instructions by offset; none where that is not possible, which is noted."""
        left_s = _DISASSEMBLY_S - self._disassembling_s
        if self.disassembler is None:
            self.missing[key] = "nvdisasm was not found: its instructions have no text"
        elif left_s <= 0:
            self.missing[key] = "its instructions have no text: those of kernels with more GPU time took too long"
        else:
            started = time.monotonic()
            try:
                return disassemble(self.disassembler, image, left_s + 1).get(symbol, {})
            except (OSError, SubprocessError) as error:
                self.missing[key] = f"its instructions have no text: {error}"
            finally:
                self._disassembling_s += time.monotonic() - started
        return {}

    def _put(self, name: str, text: str) -> None:
        """Keep a text as far as there is room.

        Raises:
            ValueError: There is none.
        """
        size_bytes = len(text.encode())
        if size_bytes > _MAX_TEXT_BYTES or self._size_bytes + size_bytes > _MAX_BYTES:
            raise ValueError(f"{name} has {size_bytes >> 20} MB, and there is room for {_MAX_BYTES >> 20} MB in all")
        self._size_bytes += size_bytes
        self.texts[name] = text
