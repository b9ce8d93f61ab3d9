"""The texts of kernels at each stage of their compilation, brought into the profile when it is made.

While the program runs, only the place of what Triton's compiler wrote is noted (`kernel_files`). Of other kernels that
were sampled the capture has the cubin.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bragg.code.compiled.resources import resources_of
from bragg.code.cubin import Cubin
from bragg.code.kernel_files import CODE, FILES
from bragg.code.sampled_function import SampledFunction
from bragg.code.sampled_lines import chains_of
from bragg.code.sass.disassembler import Listing, disassemble_all, find_disassembler
from bragg.code.sass.listing import Instruction, format_listing
from bragg.code.source_map import Stage, source_name
from bragg.code.source_place import CallChain, is_library, name_functions
from bragg.model import FrameKind, Profile

_DISASSEMBLY_S = 5.0
_MAX_KERNELS = 200
_MAX_TEXT_BYTES = 4 << 20
_MAX_BYTES = 64 << 20
# LLVM IR is the longest text by far (a product of matrices: 0.3 MB), and the one that is read least.
_MAX_LLIR_BYTES, _MAX_LLIR_BYTES_IN_ALL = 1 << 20, 16 << 20
# As Triton's description of a kernel names them; `shared` is in bytes.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "shared")


def with_kernel_code(
    profile: Profile, sampled: Sequence[SampledFunction] = (), environ: Mapping[str, str] = os.environ
) -> tuple[Profile, Sequence[Mapping[int, CallChain]]]:
    """The profile with the texts of its kernels, hottest first where there are too many.

    `Run.incomplete_code` says of each kernel what is missing, and why; `Run.kernel_options` how it was compiled.

    Args:
        profile: Its attributes tell where Triton's kernels are.
        sampled: Functions that were sampled, of one kernel that with most samples first.
        environ: Tells where nvdisasm may be.

    Returns:
        The profile, and of each sampled function where its instructions come from, by offset in bytes.
    """
    cubins = {function.kernel: function for function in reversed(sampled) if function.cubin}
    attributes = profile.run.attributes
    collector = _Collector()
    with_files = [name for name, noted in attributes.items() if {CODE, FILES} <= noted.keys()]
    for name in _by_gpu_time(profile, {*with_files, *cubins}):
        collector.read(name, attributes.get(name, {}), cubins.get(name))
    if not collector.key_of:
        return profile, [chains_of(function) for function in sampled]
    collector.collect(find_disassembler(environ))
    keys = {name: {**attributes.get(name, {}), CODE: key} for name, key in collector.key_of.items()}
    found = replace(
        profile,
        sources={**profile.sources, **collector.texts},
        meta={
            **profile.meta,
            "attributes": {**attributes, **keys},
            "kernel_code": collector.missing,
            "kernel_options": collector.options,
        },
    )
    return found, [collector.chains(function) for function in sampled]


def _by_gpu_time(profile: Profile, names: set[str]) -> list[str]:
    """Names of kernels, the one with most GPU time first."""
    frames = profile.tree.frames
    time_of: dict[str, int] = defaultdict(int)
    if "gpu_time" in profile.metrics:
        for node in (profile.tree.kind == FrameKind.KERNEL).nonzero()[0].tolist():
            time_of[frames.name[profile.tree.frame[node]]] += int(profile.own("gpu_time")[node])
    return sorted(names, key=lambda name: (-time_of[name], name))


def _resources(kernel: _Compiled) -> dict[str, int]:
    found = resources_of(kernel.cubin, kernel.symbol)
    return {} if found is None else asdict(found)


@dataclass
class _Compiled:
    """A kernel as its compiler left it.

    Attributes:
        key: `symbol/hash`.
        symbol: Its name in the cubin.
        cubin: The machine code.
        texts: Stages before it, as far as they are known.
        options: What it was compiled with.
        code: Its instructions, once they are known.
    """

    key: str
    symbol: str
    cubin: bytes
    texts: dict[Stage, str] = field(default_factory=dict)
    options: dict[str, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)

    @classmethod
    def from_files(cls, key: str, description: Path) -> _Compiled:
        """What Triton wrote; `description` is the file that ends in `.json`.

        Raises:
            OSError, ValueError, KeyError: A file is missing or damaged.
        """
        described = json.loads(description.read_text(encoding="utf-8"))
        stages: list[Stage] = [stage for stage in Stage if stage is not Stage.SASS]
        files = {stage: description.with_suffix(f".{stage.value}") for stage in stages}
        # Gluon has no TTIR.
        texts = {stage: file.read_text(encoding="utf-8") for stage, file in files.items() if file.exists()}
        options = {name: value for name in _OPTIONS if isinstance(value := described.get(name), int)}
        return cls(key, str(described["name"]), description.with_suffix(".cubin").read_bytes(), texts, options)

    def has_code_of(self, function: SampledFunction) -> bool:
        """Whether it is this function that was sampled: one name may stand for kernels of several cubins."""
        if not function.cubin or function.cubin == self.cubin:
            return function.symbol == self.symbol
        own = SampledFunction(function.kernel, self.symbol, 0, self.cubin)
        return chains_of(own) == chains_of(function)


class _Collector:
    """Kernels that were read so far, and what is known of them.

    Attributes:
        key_of: `symbol/hash` of each kernel, by name.
        texts: By name in the profile.
        missing: What is not there and why, by key.
        options: What each kernel was compiled with and what it takes, by key.
    """

    def __init__(self) -> None:
        self.key_of: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.options: dict[str, dict[str, int]] = {}
        self._kernels: dict[str, _Compiled] = {}
        self._size_bytes = self._llir_bytes = 0

    def read(self, name: str, noted: Mapping[str, str], sampled: SampledFunction | None) -> None:
        """Find a kernel, in its files or in what was sampled of it."""
        key = self.key_of[name] = noted.get(CODE) or self._key_of(sampled)
        if key in self._kernels:
            return
        if len(self._kernels) >= _MAX_KERNELS:
            self.missing[key] = f"only the {_MAX_KERNELS} kernels with most GPU time are kept"
            return
        if FILES in noted:
            try:
                self._kernels[key] = _Compiled.from_files(key, Path(noted[FILES]))
            except (OSError, ValueError, KeyError) as error:
                self.missing[key] = f"its files could not be read: {error}"
            else:
                return
        if sampled is not None:
            self._kernels[key] = _Compiled(key, sampled.symbol, sampled.cubin)

    def _key_of(self, sampled: SampledFunction | None) -> str:
        """Of the kernel whose code was sampled, under another name perhaps."""
        if sampled is None:
            return ""
        known = (kernel.key for kernel in self._kernels.values() if kernel.has_code_of(sampled))
        return next(known, f"{sampled.symbol}/{sampled.checksum:08x}")

    def collect(self, disassembler: str | None) -> None:
        """Keep the texts of all kernels that were read."""
        kernels = list(self._kernels.values())
        for kernel, listing in zip(kernels, self._disassembled(disassembler, kernels), strict=True):
            try:
                self.options[kernel.key] = kernel.options
                for stage, text in kernel.texts.items():
                    if stage is not Stage.LLIR or self._has_room_for_llir(kernel, text):
                        self._put(source_name(kernel.key, stage), text)
                self._put_machine_code(kernel, listing.get(kernel.symbol, {}))
            except ValueError as error:
                self.missing[kernel.key] = f"its code could not be read: {error}"

    def chains(self, function: SampledFunction) -> Mapping[int, CallChain]:
        """Where the instructions of a function come from, by offset: as its compiler tells, else as its cubin does."""
        kernel = self._kernels.get(self.key_of.get(function.kernel, ""))
        if kernel is None or not kernel.code or not kernel.has_code_of(function):
            return chains_of(function)
        return {instruction.offset_bytes: instruction.chain for instruction in kernel.code}

    def _disassembled(self, disassembler: str | None, kernels: Sequence[_Compiled]) -> Iterator[Listing]:
        """The text of the instructions of each kernel; empty where there is none, which is noted."""
        if disassembler is None:
            found: Sequence[Listing | str] = ["nvdisasm was not found"] * len(kernels)
        else:
            found = disassemble_all(disassembler, [kernel.cubin for kernel in kernels], _DISASSEMBLY_S)
        for kernel, listing in zip(kernels, found, strict=True):
            if isinstance(listing, str):
                self.missing.setdefault(kernel.key, f"its instructions have no text: {listing}")
            yield {} if isinstance(listing, str) else listing

    def _put_machine_code(self, kernel: _Compiled, listing: Mapping[int, str]) -> None:
        self.options[kernel.key] = {**kernel.options, **_resources(kernel)}
        code = Cubin.of(kernel.cubin).code(kernel.symbol, listing, kernel.texts.get(Stage.PTX, ""))
        for file in sorted({place.file for instruction in code for place in instruction.chain} - self.texts.keys()):
            if not is_library(file):
                self._put_source(kernel.key, file)
        chains = name_functions((instruction.chain for instruction in code), self.texts)
        kernel.code = [instruction._replace(chain=chain) for instruction, chain in zip(code, chains, strict=True)]
        self._put(source_name(kernel.key, Stage.SASS), format_listing(kernel.code))

    def _has_room_for_llir(self, kernel: _Compiled, text: str) -> bool:
        if len(text) > _MAX_LLIR_BYTES or self._llir_bytes + len(text) > _MAX_LLIR_BYTES_IN_ALL:
            note = f"its LLIR, {len(text) >> 10} kB, is left out"
            self.missing[kernel.key] = "; ".join(filter(None, (self.missing.get(kernel.key), note)))
            return False
        self._llir_bytes += len(text)
        return True

    def _put_source(self, key: str, file: str) -> None:
        try:
            self._put(file, Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self.missing.setdefault(key, f"its source could not be read: {error}")

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
