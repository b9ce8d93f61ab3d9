"""Work in 64-bit floating point, by the names of kernels."""

from __future__ import annotations

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import queued, stepped

_FFT = (
    "_Z11regular_fftILj2048E3EPTIJLj8EEELj4ELj1EL9padding_t6EL9twiddle_t0EL20loadstore_modifier_t2EL8layout_t1E"
    "j{}21HostConfigPlaceholderEv18kernel_arguments"
)
_TIMES = (
    "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_13BinaryFunctorI"
    "N3c107complexI{}EES6_S6_NS0_15binary_internal10MulFunctorIS6_EEEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_"
)


@pytest.mark.parametrize(
    ("kernel", "gain"),
    [
        (_FFT.format("d"), 0.5),
        (_FFT.format("f"), None),
        (_TIMES.format("d"), 0.5),
        (_TIMES.format("f"), None),
        ("void dpRadix0064B::kernel1Mem<unsigned int>", 0.5),
        ("void spRadix0064B::kernel1Mem<unsigned int>", None),
        ("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", 0.7),  # products gain more
    ],
)
def test_kernels_of_doubles_and_of_complex_numbers_of_doubles_are_found(kernel: str, gain: float | None) -> None:
    program = stepped(queued(4, "train.py:9@step", kernel, 100), 400)
    findings = analysis(Evidence(program), ["double-precision"]).findings
    assert [each.gain and each.gain.share for each in findings] == ([pytest.approx(gain, abs=0.02)] if gain else [])
