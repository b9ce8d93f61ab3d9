"""What the names of libraries' and compilers' kernels tell: who wrote them, for which GPU, and how they multiply.

| who | example |
|---|---|
| cuBLAS | `nvjet_sm90_tst_64x48_64x15_2x4_h_bz_bias_TNT`: tile 64x48, 64 deep, 15 stages |
| cuBLAS, cuDNN | `sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage3_..._tensor16x8x8_aligna4_...` |
| cuBLAS | `ampere_sgemm_128x64_tn`, `ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn` |
| CUTLASS | `cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align2`: tile 256x128, 64 deep, 3 stages |
| CUTLASS | `cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1` |
| cuDNN | `cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_...` |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class LibraryKernel:
    """What a name tells; None and empty: it does not.

    Attributes:
        author: `cuBLAS`, `CUTLASS`, `cuDNN`, `ATen`, `XLA`, `Inductor`, `NCCL` or `CUB`.
        generation: Compute capability that it was written for: `80`.
        tile: Rows, columns and depth of what a block multiplies at once.
        stages: Of its pipeline.
        operand: Type of what it multiplies: `f32`, `tf32`, `bf16`, `f16`, `f8`.
        has_tensor_cores: Whether tensor cores multiply.
        layout: How operands lie in memory: `nt`, `nhwc`.
        align: Elements at whose multiples rows of operands must begin.
    """

    author: str
    generation: str = ""
    tile: tuple[int, int, int] | None = None
    stages: int | None = None
    operand: str = ""
    has_tensor_cores: bool | None = None
    layout: str = ""
    align: int | None = None


_NVJET = re.compile(
    r"nvjet_(?:sm(?P<generation>\d+)_)?(?P<types>[a-z]+)_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)_"
    r".*?(?P<layout>[NT]{3})?$"
)
_XMMA = re.compile(
    r"sm(?P<generation>\d+)_xmma_\w*?(?:gemm|conv)\w*?_(?P<types>(?:[a-z]+\d+){2}_(?:[a-z]+\d+){2})_f32_"
    r"(?P<layout>[nt]{2}|nhwc|nchw)?.*?tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
    r"(?:_stage(?P<stages>\d+))?(?P<rest>\w*)"
)
_CUTLASS = re.compile(
    r"cutlass_?(?:3x_sm)?(?P<generation>\d+)?_(?P<unit>\w*?)(?:tensorop|simt)_(?P<types>\w*?)"
    r"(?P<m>\d+)x(?P<n>\d+)_(?:(?P<k>\d+)x(?P<stages>\d+)_)?(?P<layout>[nt]{2}|nhwc)(?:\w*?_align(?P<align>\d+))?"
)
_NAMED = re.compile(
    r"(?P<family>volta|turing|ampere|ada|hopper)_(?P<types>\w*?gemm\w*?)_(?P<m>\d+)x(?P<n>\d+)"
    r"(?:\w*?_stages_(?P<k>\d+)x(?P<stages>\d+))?\w*?_(?P<layout>[nt]{2})"
)
_SDPA = re.compile(
    r"cudnn_generated_\w*?_sm(?P<generation>\d+)_\w*?(?P<unit>wgmma|wmma|umma)_(?P<type>[a-z]+\d+)_\w*?"
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_"
)
_FAMILIES = {"volta": "70", "turing": "75", "ampere": "80", "ada": "89", "hopper": "90"}
_NVJET_TYPES = {"h": "f16", "t": "bf16", "q": "f8"}
_OPERANDS = (("tf32", "tf32"), ("bf16", "bf16"), ("e4m3", "f8"), ("e5m2", "f8"), ("f16", "f16"), ("fp16", "f16"))
# s1688 multiplies 16x8x8 TF32, unless a type is named.
_TF32_SHAPE = re.compile(r"s\d*1688")
_AUTHORS = (
    ("NCCL", re.compile(r"nccl", re.I)),
    ("Inductor", re.compile(r"triton_(?:poi|red|per|tem|mm|bmm)\w*_")),
    ("cuDNN", re.compile(r"cudnn")),
    ("cuBLAS", re.compile(r"cublas|splitKreduce|gemv\w*_kernel|gemmSN|gemmk1")),
    ("ATen", re.compile(r"at::native|2at(?:6native|4cuda)|at_cuda_detail|c10::|N3c10")),
    ("CUB", re.compile(r"cub::|3cub\d")),
    (
        "XLA",
        re.compile(r"(?:loop|input|gemm|copy|transpose)_\w*fusion|^wrapped_\w+$|stream_executor|^fusion(?:_\d+)?$"),
    ),
    ("CUTLASS", re.compile(r"cutlass")),
)


@lru_cache(maxsize=4096)
def library_kernel(name: str) -> LibraryKernel | None:
    """What a name tells; None: it is of nobody who is known here."""
    for pattern, read in _READERS:
        if match := pattern.search(name):
            return read(match)
    author = next((author for author, pattern in _AUTHORS if pattern.search(name)), "")
    return LibraryKernel(author) if author else None


def _nvjet(match: re.Match[str]) -> LibraryKernel:
    operand = _NVJET_TYPES.get(match["types"][0], "")
    return LibraryKernel(
        "cuBLAS",
        match["generation"] or "",
        _tile(match),
        int(match["stages"]),
        operand,
        True,
        (match["layout"] or "").lower(),
    )


def _xmma(match: re.Match[str]) -> LibraryKernel:
    operands = match["types"].partition("_")
    is_plain = "ffma" in match["rest"]
    operand = "f32" if is_plain else _operand(operands[2]) or _operand(operands[0])
    align = re.search(r"aligna(\d+)", match["rest"])
    return LibraryKernel(
        "cuDNN" if "cudnn" in match["rest"] else "cuBLAS",
        match["generation"],
        _tile(match),
        int(match["stages"]) if match["stages"] else None,
        operand,
        not is_plain,
        match["layout"] or "",
        int(align[1]) if align else None,
    )


def _cutlass(match: re.Match[str]) -> LibraryKernel:
    is_plain = "simt" in match[0]
    operand = ("f32" if "sgemm" in match["types"] else "") if is_plain else _typed(match["types"])
    return LibraryKernel(
        "CUTLASS",
        match["generation"] or "",
        _tile(match) if match["k"] else None,
        int(match["stages"]) if match["stages"] else None,
        operand,
        not is_plain,
        match["layout"],
        int(match["align"]) if match["align"] else None,
    )


def _named(match: re.Match[str]) -> LibraryKernel:
    types = match["types"]
    is_plain = re.match(r"[sdcz]gemm", types) is not None
    operand = ("f32" if types.startswith("sgemm") else "") if is_plain else _typed(types)
    tile = _tile(match) if match["k"] else None
    stages = int(match["stages"]) if match["stages"] else None
    return LibraryKernel("cuBLAS", _FAMILIES[match["family"]], tile, stages, operand, not is_plain, match["layout"])


def _sdpa(match: re.Match[str]) -> LibraryKernel:
    return LibraryKernel("cuDNN", match["generation"], _tile(match), None, _operand(match["type"]), True)


def _tile(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match["m"]), int(match["n"]), int(match["k"])


def _typed(types: str) -> str:
    return _operand(types) or ("tf32" if _TF32_SHAPE.search(types) else "")


def _operand(types: str) -> str:
    return next((operand for text, operand in _OPERANDS if text in types), "")


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], LibraryKernel]], ...] = (
    (_NVJET, _nvjet),
    (_XMMA, _xmma),
    (_CUTLASS, _cutlass),
    (_NAMED, _named),
    (_SDPA, _sdpa),
)
