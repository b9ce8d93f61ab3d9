from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.profiles import profile_from_text

UNALIGNED = "_ZN7cutlass7Kernel2I63cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nn_align2EEvNT_6ParamsE"
ALIGNED = UNALIGNED.replace("align2", "align8")
UNALIGNED_TF32 = "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align1EEvNT_6ParamsE"
ALIGNED_TF32 = UNALIGNED_TF32.replace("align1", "align4")
OLD = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"
NEW = "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_TNT"
NEW_CONVOLUTION = (
    "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32_warpgroupsize1x1x1_execute_kernel__5x_cublas"
)
OLD_CONVOLUTION = (
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage3_tensor16x8x8_aligna4_execute_kernel__5x_cublas"
)


def found(name: str, arch: str) -> list[Finding]:
    profile = profile_from_text(f"root\n  train.py:12@step\n    {name} 10ms x100 @0")
    meta = {"devices": [{"arch": arch}], "gpu_busy_ns": {"0": 10_000_000}, "gpu_first_ns": 0, "gpu_last_ns": 10_000_000}
    return analysis(Evidence(replace(profile, meta=meta)), ["unaligned-matmul", "old-library-kernel"]).findings


@pytest.mark.parametrize("name", [UNALIGNED, UNALIGNED_TF32])
@pytest.mark.parametrize("arch", ["80", "90"])
def test_an_unaligned_product_is_found_on_every_gpu(name: str, arch: str) -> None:
    (finding,) = found(name, arch)
    assert (finding.rule, finding.kernel, finding.file, finding.line) == ("unaligned-matmul", name, "train.py", 12)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.4)


def test_odd_sizes_gain_more() -> None:
    (finding,) = found(
        "_ZN7cutlass7Kernel2I55cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1EEvNT_6ParamsE", "90"
    )
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.85)


@pytest.mark.parametrize("name", [ALIGNED, ALIGNED_TF32, OLD, NEW, OLD_CONVOLUTION])
def test_an_aligned_product_is_not(name: str) -> None:
    assert found(name, "80") == []


@pytest.mark.parametrize("name", [OLD, OLD_CONVOLUTION])
def test_a_kernel_for_older_gpus_is_found_on_a_newer_one(name: str) -> None:
    (finding,) = found(name, "90")
    assert (finding.rule, finding.line) == ("old-library-kernel", 12)


@pytest.mark.parametrize("name", [NEW, NEW_CONVOLUTION])
def test_a_kernel_for_this_gpu_is_not(name: str) -> None:
    assert found(name, "90") == []
