from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.views.text.demangle import demangle
from bragg.views.text.names import short_function, short_symbol, shorten

LAMBDA = "at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}"
COPY = "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const"
FILL_SYMBOL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIiEESt5arrayIPcLm1EEEEviT0_T1_"

SHORT_NAMES = {
    "matmul_kernel<BM=128 A=(1,2) w8 s3 f16*2 f32 !16:M>": "matmul_kernel<BM=128 A=(1,2) w8 s3 f16*2 f32 !16:M>",
    "at::native::vectorized_elementwise_kernel<4, FillFunctor<int>>": "elementwise[Fill<int>]",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)": "elementwise[add<float>]",
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, "
    "float, float, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, int const&)"
    "::{lambda(int)#1}>(int, X)": "elementwise[Mul<float>]",
    f"void at::native::vectorized_elementwise_kernel<4, {LAMBDA}::operator()() const::{{lambda(float)#1}}>(int)": (
        "elementwise[launch_clamp_scalar<float>]"
    ),
    f"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<{COPY}::{{lambda(float)#1}}>"
    "(at::TensorIteratorBase&)::{lambda(int)#1}>(int)": "elementwise[direct_copy<float>]",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned "
    "int, float, 4, 4> >(int)": "reduce[MeanOps<float>]",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
    "(at::native::(anonymous namespace)::ADAM_MODE)1, false> >(int)": "multi_tensor_apply[FusedAdam<float>]",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_16x16_128x2_tn_align8>(X::Params)": (
        "cutlass_80_wmma_tensorop_bf16_16x16_128x2_tn_align8"
    ),
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, true, false>(float*, int)": (
        "softmax_warp_forward<float>"
    ),
    "void gemmSN_NN_kernel<c10::BFloat16, 128, 2, cublasGemvTensor<float const> >(int)": "gemmSN_NN<bf16>",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    ),
    FILL_SYMBOL: "elementwise[Fill<int>]",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 3ul> >(int)": (
        "elementwise[GeluBackward<float>]"
    ),
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_alignc4_execute_kernel"
    "__5x_cublas": "sm80_xmma_gemm_f32_nn_256x128x8",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_"
    "cublas": "sm90_xmma_gemm_bf16_tn_128x128x64",
}
PLAIN_NAMES = [
    *("matmul_kernel", "triton_poi_fused_add_0", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", ""),
    *("matmul_<grid:128x1x1>_<warps:4>", "matmul_<grid:128x1x1>", "attention<f16>_<causal>", "step: <loss, 1>"),
]


@pytest.mark.parametrize(("name", "short"), SHORT_NAMES.items())
def test_kernel_name_says_what_is_computed(name: str, short: str) -> None:
    assert short_symbol(name) == short


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_name_without_cpp_syntax_is_kept(name: str) -> None:
    assert short_symbol(name) == name


def test_operator_function_is_kept() -> None:
    assert shorten("a::Functor<float>::operator()(float) const") == "a::Functor<float>::operator()(float) const"


def test_symbol_is_demangled_to_its_whole_name() -> None:
    assert demangle(FILL_SYMBOL).startswith(
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>"
    )


def test_symbol_that_the_runtime_cannot_read_is_reduced_to_its_qualified_name() -> None:
    assert demangle("_ZN2at6native18elementwise_kernelIQQ") == "at::native::elementwise_kernel"


def test_symbol_that_nobody_can_read_is_kept() -> None:
    assert demangle("_ZN99x") == "_ZN99x"


def test_argument_nested_deeper_than_the_limit_is_left_out() -> None:
    name = "a::kernel<" + "B<" * 2000 + "float" + ">" * 2000 + ">(int)"
    assert shorten(name) == "kernel[B]"


@given(st.text(alphabet="ab:<>(){}, 1_Z&*", max_size=60) | st.text(max_size=30))
def test_any_name_becomes_some_name(name: str) -> None:
    assert bool(short_symbol(name)) == bool(name)


@given(st.binary(max_size=30).map(lambda raw: "_Z" + raw.decode("latin-1")))
def test_any_symbol_is_demangled_to_something(symbol: str) -> None:
    assert demangle(symbol)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("void at::native::fill<float, 3>(at::Tensor const&)", "at::native::fill"),
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "at::_ops::add_Tensor::call"),
        ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Node::operator()"),
        (
            "at::native::(anonymous namespace)::run(int)::{lambda(int)#1}::operator()(int) const",
            "at::native::(anonymous namespace)::run::{lambda#1}::operator()",
        ),
        ("std::ostream& operator<<(std::ostream&, char)", "operator<<(std::ostream&, char)"),
        ("operators::run(int)", "operators::run"),
        ("ffi_call", "ffi_call"),
        ("0x6250", "0x6250"),
        ("[unknown native code]", "[unknown native code]"),
    ],
)
def test_functions_of_the_host_keep_their_qualified_names(symbol: str, name: str) -> None:
    assert short_function(symbol) == name
