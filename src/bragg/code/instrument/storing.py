"""Where a kernel keeps its frames while it runs: in memory of the GPU, or in shared memory until a warp ends.

The memory of a warp is the same in the end: 16-byte aligned frames, u32 `FRAME | number << 8 | words`, the readings
(low half of the clock), values of scopes, and the first word again up to the end of the vector. A frame is begun only
where the largest one fits; once one did not, none is stored, but they are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bragg.code.instrument.segments import MAX_WORDS, VECTOR_WORDS, Frame

FRAME = 0xB0000000
WARP_BYTES = 16384
"""Of frames in memory of the GPU; a warp's memory is aligned to it."""
SHARED_FRAMES = "bragg_frames"
"""Symbol of the frames in shared memory."""

_WORD = 4
_LARGEST = (MAX_WORDS + 1) * _WORD
# Behind static memory Triton's own begins, whose tiles TMA wants aligned to this.
_ALIGNMENT = 1024
_VECTOR_BYTES, _WARP_VECTORS_BYTES = 16, 512


class Store(Protocol):
    """How frames are stored.

    Between `begin` and `end`, %bragg_d2 is the warp's memory of the GPU and %bragg_w6 its number among the warps of its
    block that store, as the prologue and each end of a warp find them anew.
    """

    @property
    def size_bytes(self) -> int:
        """Shared memory of a block, beside what the kernel has itself."""

    @property
    def last_start(self) -> int:
        """Bytes of a warp's memory at which the last frame may begin."""

    def declaration(self) -> list[str]:
        """Variables of the module."""

    def registers(self) -> list[str]:
        """Variables of the kernel."""

    def begin(self) -> list[str]:
        """Statements before the first frame; %bragg_p: whether this lane stores."""

    def flush(self, number: int, frame: Frame) -> list[str]:
        """Statements that store a frame."""

    def due(self) -> list[str]:
        """Statements that set %bragg_w8 to the bytes of all frames, stored or not."""

    def end(self, number: int) -> list[str]:
        """Statements at an end of a warp, behind `due`."""


def _words(number: int, frame: Frame) -> tuple[str, list[str]]:
    """The statement that sets the first word, and the registers of all words."""
    words = ["%bragg_w9", *frame.registers]
    words += [each.value.register for each in frame.values]
    words += ["%bragg_w9"] * (frame.n_stored_words - len(words))
    return f"mov.u32 %bragg_w9, {FRAME | number << 8 | frame.n_words:#x};", words


def _vectors(words: list[str]) -> list[tuple[int, str]]:
    """Offset in bytes and registers of each vector."""
    return [(_WORD * at, ", ".join(words[at : at + VECTOR_WORDS])) for at in range(0, len(words), VECTOR_WORDS)]


class _GlobalMemory:
    """Streaming stores, each time that control passes."""

    size_bytes = 0
    # The address must not leave the warp's memory: from its low bits alone it shows how far it has come.
    last_start = WARP_BYTES - 2 * _LARGEST

    def declaration(self) -> list[str]:
        return []

    def registers(self) -> list[str]:
        return ["\t.reg .b64 \t%bragg_at;"]

    def begin(self) -> list[str]:
        return ["mov.b64 %bragg_at, %bragg_d2;", "mov.pred %bragg_on, %bragg_p;"]

    def flush(self, number: int, frame: Frame) -> list[str]:
        first, words = _words(number, frame)
        stores = [f"@%bragg_on st.global.cs.v4.b32 [%bragg_at+{at}], {{{each}}};" for at, each in _vectors(words)]
        return [
            first,
            *stores,
            f"add.s64 %bragg_at, %bragg_at, {_WORD * len(words)};",
            "cvt.u32.u64 %bragg_w10, %bragg_at;",
            f"and.b32 %bragg_w10, %bragg_w10, {WARP_BYTES - 1};",
            f"setp.le.and.u32 %bragg_on, %bragg_w10, {self.last_start}, %bragg_on;",
        ]

    def due(self) -> list[str]:
        return ["sub.s64 %bragg_d3, %bragg_at, %bragg_d2;", "cvt.u32.u64 %bragg_w8, %bragg_d3;"]

    def end(self, number: int) -> list[str]:
        return []


IN_GLOBAL_MEMORY: Store = _GlobalMemory()


@dataclass(frozen=True)
class SharedMemory:
    """Stores to shared memory, which each warp copies to memory of the GPU when it ends.

    Attributes:
        warps: Of a block, that store.
        warp_bytes: Of each.
    """

    warps: int
    warp_bytes: int

    @property
    def size_bytes(self) -> int:
        """Of all its warps, aligned."""
        return -(-self.warps * self.warp_bytes // _ALIGNMENT) * _ALIGNMENT

    @property
    def last_start(self) -> int:
        """Where the largest frame still fits."""
        return self.warp_bytes - _LARGEST

    def declaration(self) -> list[str]:
        """Static memory: the launch itself stays as it is."""
        return [f".shared .align {_VECTOR_BYTES} .b8 {SHARED_FRAMES}[{self.size_bytes}];"]

    def registers(self) -> list[str]:
        """The address, and the last one at which a frame may begin."""
        return ["\t.reg .b32 \t%bragg_at, %bragg_last;"]

    def begin(self) -> list[str]:
        """The first address."""
        last = f"add.u32 %bragg_last, %bragg_at, {self.last_start};"
        return [*self._base("%bragg_at"), last, "mov.pred %bragg_on, %bragg_p;"]

    def flush(self, number: int, frame: Frame) -> list[str]:
        """Stores of 16 bytes."""
        first, words = _words(number, frame)
        stores = [f"@%bragg_on st.shared.v4.b32 [%bragg_at+{at}], {{{each}}};" for at, each in _vectors(words)]
        return [
            first,
            *stores,
            f"add.u32 %bragg_at, %bragg_at, {_WORD * len(words)};",
            "setp.le.and.u32 %bragg_on, %bragg_at, %bragg_last, %bragg_on;",
        ]

    def due(self) -> list[str]:
        """From the first address to the one that was reached."""
        return [*self._base("%bragg_w9"), "sub.u32 %bragg_w8, %bragg_at, %bragg_w9;"]

    def end(self, number: int) -> list[str]:
        """All lanes copy what there is, and no more than there is room for."""
        label, done = f"$L__bragg_copy_{number}", f"$L__bragg_copied_{number}"
        return [
            "vote.sync.any.pred %bragg_p, %bragg_p, 0xffffffff;",
            f"@!%bragg_p bra {done};",
            "bar.warp.sync 0xffffffff;",
            f"min.u32 %bragg_w11, %bragg_w8, {self.warp_bytes};",
            "mov.u32 %bragg_w10, %tid.x;",
            "and.b32 %bragg_w10, %bragg_w10, 31;",
            f"mul.lo.u32 %bragg_w10, %bragg_w10, {_VECTOR_BYTES};",
            f"{label}:",
            "setp.ge.u32 %bragg_p, %bragg_w10, %bragg_w11;",
            f"@%bragg_p bra {done};",
            "add.u32 %bragg_w0, %bragg_w9, %bragg_w10;",
            "ld.shared.v4.b32 {%bragg_w0, %bragg_w1, %bragg_w2, %bragg_w3}, [%bragg_w0];",
            "cvt.u64.u32 %bragg_d3, %bragg_w10;",
            "add.s64 %bragg_d3, %bragg_d2, %bragg_d3;",
            "st.global.cs.v4.b32 [%bragg_d3], {%bragg_w0, %bragg_w1, %bragg_w2, %bragg_w3};",
            f"add.u32 %bragg_w10, %bragg_w10, {_WARP_VECTORS_BYTES};",
            f"bra {label};",
            f"{done}:",
        ]

    def _base(self, register: str) -> list[str]:
        return [
            f"mov.u32 {register}, {SHARED_FRAMES};",
            f"mad.lo.u32 {register}, %bragg_w6, {self.warp_bytes}, {register};",
        ]
