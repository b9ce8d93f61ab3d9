from __future__ import annotations

from pathlib import Path

import pytest

import bragg
from bragg.model import FrameKind
from bragg.model.kernels.library_names import LibraryKernel, library_kernel

RECORDINGS = sorted((Path(__file__).parents[2] / "golden" / "recordings").glob("*.bragg"))

# Names of recordings of an H100 and an H200, and two of older libraries.
_ALIGNED_TO_4_BYTES = "cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nn_align2"
NAMES = {
    "nvjet_sm90_tst_64x48_64x15_2x4_h_bz_bias_TNT": LibraryKernel(
        "cuBLAS", "90", (64, 48, 64), 15, "bf16", True, "tnt"
    ),
    "nvjet_sm90_tss_256x128_64x4_1x2_h_bz_coopA_TNT": LibraryKernel(
        "cuBLAS", "90", (256, 128, 64), 4, "bf16", True, "tnt"
    ),
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_alignc4_execute_kernel__"
    "5x_cublas": LibraryKernel("cuBLAS", "80", (256, 128, 8), 3, "f32", False, "nn", 4),
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize32x64x64_stage4_warpsize2x2x1_tensor16x8x8_aligna4_alignc4_execute_"
    "kernel__5x_cublas": LibraryKernel("cuBLAS", "80", (32, 64, 64), 4, "tf32", True, "nt", 4),
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64_warpgroupsize1x1x1_g1_execute_"
    "segment_k_off_kernel__5x_cudnn": LibraryKernel("cuDNN", "90", (128, 64, 64), None, "bf16", True, "nhwc"),
    "_ZN7cutlass7Kernel2I42cutlass_80_simt_sgemm_128x32_8x5_nn_align1EEvNT_6ParamsE": LibraryKernel(
        "CUTLASS", "80", (128, 32, 8), 5, "f32", False, "nn", 1
    ),
    "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4EEvNT_6ParamsE": LibraryKernel(
        "CUTLASS", "80", (64, 64, 16), 6, "tf32", True, "tn", 4
    ),
    "_ZN7cutlass7Kernel2I55cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1EEvNT_6ParamsE": LibraryKernel(
        "CUTLASS", "75", None, None, "bf16", True, "tn", 1
    ),
    f"_ZN7cutlass7Kernel2I63{_ALIGNED_TO_4_BYTES}EEvNT_6ParamsE": LibraryKernel(
        "CUTLASS", "80", (256, 128, 64), 3, "bf16", True, "nn", 2
    ),
    "_ZN17cutlass__5x_cudnn6KernelI72cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8EEvNT_6Para"
    "msE": LibraryKernel("CUTLASS", "", (256, 64, 32), 4, "bf16", True, "nhwc", 8),
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x64_4x1x1_cga1x1x1_kernel0": LibraryKernel(
        "cuDNN", "80", (64, 64, 64), None, "f16", True
    ),
    "ampere_sgemm_128x64_tn": LibraryKernel("cuBLAS", "80", None, None, "f32", False, "tn"),
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn": LibraryKernel(
        "cuBLAS", "80", (128, 64, 64), 4, "bf16", True, "tn"
    ),
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>": LibraryKernel("ATen"),
    "loop_exponential_multiply_fusion": LibraryKernel("XLA"),
    "triton_poi_fused_add_relu_0": LibraryKernel("Inductor"),
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": LibraryKernel("NCCL"),
}


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:40])
def test_a_name_tells_who_wrote_it_and_how_it_multiplies(name: str) -> None:
    assert library_kernel(name) == NAMES[name]


@pytest.mark.parametrize(
    "name", ["", "softmax", "my_gemm_kernel", "nvjet", "cutlass_80_tensorop", "sm80_xmma_gemm_f32f32"]
)
def test_other_names_tell_no_tile(name: str) -> None:
    found = library_kernel(name)
    assert found is None or (found.tile, found.operand) == (None, "")


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_kernel_of_the_recordings_is_somebodys(path: Path) -> None:
    frames = bragg.load(path).tree.frames
    names = [frames.name[row] for row in (frames.kind == FrameKind.KERNEL).nonzero()[0].tolist()]
    assert [name for name in names if library_kernel(name) is None] == []


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_product_of_the_recordings_tells_its_tile_and_type(path: Path) -> None:
    frames = bragg.load(path).tree.frames
    multiplies = ("nvjet", "xmma_gemm", "cutlass_80", "implicit_gemm")
    names = [
        name
        for name in frames.name
        if name.startswith(("nvjet", "sm", "_ZN7cutlass")) and any(w in name for w in multiplies)
    ]
    untold = [name for name in names if not (told := library_kernel(name)) or not told.tile or not told.operand]
    assert untold == []
