"""Each rule on a program with its defect and on the repaired one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import launched, queued, stepped

MAIN = "train.py:3@main"


def found(profile: Profile, rule: str, least: float = 0.01) -> list[Finding]:
    result = analysis(Evidence(profile), [rule])
    assert not result.skipped, result.skipped
    return [each for each in result.findings if each.gain is None or each.gain.share >= least]


def counting(profile: Profile, made: int, ran: int) -> Profile:
    """With nodes of autograd that operators made, and that a backward pass ran."""
    counts = {"autograd_nodes": made, "evaluated_nodes": ran}
    return replace(profile, meta={**profile.meta, "statistics": counts})


MM = f"{MAIN} > aten::mm#operator"
ADD = f"{MAIN} > aten::add#operator"
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4>"
STEP = "Optimizer.step#SGD.step#operator"
ZERO = "Optimizer.zero_grad#SGD.zero_grad#operator"
GRADIENT = f"{MAIN} > aten::mm#operator > [backward]#state > MmBackward0#operator"
CONVOLUTION = f"{MAIN} > aten::conv2d#operator > aten::_convolution#operator"
ADDS_BIAS = f"{CONVOLUTION} > aten::add_#operator"
BIASES = queued(4, ADDS_BIAS, ELEMENTWISE, 50) + "".join(f"\nhost {at}-{at + 2} {ADDS_BIAS}" for at in range(30, 42, 3))
NORMS = "\n".join(f"host {at}-{at + 2} {MAIN} > aten::batch_norm#operator" for at in range(100, 112, 3))
ATTENTION = f"{MAIN} > aten::scaled_dot_product_attention#operator > aten::_scaled_dot_product_attention_math#operator"
FLASH = f"{MAIN} > aten::scaled_dot_product_attention#operator > aten::_flash_attention_forward#operator"
ITEM = f"{MAIN} > aten::item#operator > aten::_local_scalar_dense#operator"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
COPY = f"{MAIN} > aten::copy_#operator"
MOVES = f"{MAIN} > aten::to#operator"
SAVE = "/lib/python3.12/site-packages/torch/serialization.py:900@save"
REGION = "Torch-Compiled Region: "
LOOKUP = f"{MAIN} > TorchDynamo Cache Lookup#operator"
ROW_GRADIENT = f"{MAIN} > aten::select#operator > [backward]#state > SelectBackward0#operator"

ITERATES = "train.py:2@main > /lib/torch/_tensor.py:1223@Tensor.__iter__ > aten::unbind#operator"


def by_row(rows: int, calls: int) -> Profile:
    """A loop over the rows of a tensor, and so many products in the same function."""
    taken = "\n".join(f"host {i + 1}-{i + 2} {ITERATES} > aten::select#operator" for i in range(rows))
    products = "\n".join(f"host {at}-{at + 5} {MM}" for at in range(50, 50 + 40 * calls, 40))
    work = launched(calls, MM, "gemv", 2, 40, 50)
    return stepped(f"host 0-{rows + 2} {ITERATES}\n{taken}\n{products}\n{work}", 60 + 40 * calls)


WAITS = f"""
{queued(2, MM, "gemm", 100)}
host 20-215 {ITEM} > cuMemcpyDtoHAsync_v2#gpu_api ->50
gpu 208-210 {ITEM} > copy DtoH#memory <-50
"""

PAIRS = {
    # A kernel of 2 us each 40 us.
    "many-launches": (
        stepped(launched(100, MM, "gemm", 2, 40), 4010),
        stepped(queued(10, MM, "gemm", 390), 4010),
    ),
    # Two kernels of 50 us, each after 450 us of Python; the repaired one has a batch ten times as large.
    "small-steps": (
        stepped(f"host 0-1000 {MAIN}\n" + launched(2, MM, "gemm", 50, 450, 450), 1000),
        stepped(f"host 0-1400 {MAIN}\n" + launched(2, MM, "gemm", 500, 450, 450), 1500),
    ),
    # A product of 2 us for each of 16 rows; the repaired one has one for all of them.
    "row-loop": (by_row(16, 16), by_row(16, 1)),
    "planning": (
        stepped(
            f"host 0-3000 {MAIN} > aten::_cudnn_attention_forward#operator\n"
            + launched(1, f"{MAIN} > aten::_cudnn_attention_forward#operator", "sdpa", 20, 1, 2990),
            3050,
        ),
        stepped(
            f"host 0-30 {MAIN} > aten::_cudnn_attention_forward#operator\n"
            + launched(1, f"{MAIN} > aten::_cudnn_attention_forward#operator", "sdpa", 20, 1, 20),
            60,
        ),
    ),
    "cpu-work": (
        stepped(f"host 0-900 {MAIN} > aten::normal_#operator\n" + launched(1, MM, "gemm", 50, 1, 910), 1000),
        stepped(launched(1, f"{MAIN} > aten::normal_#operator", "normal", 20, 1) + launched(0, MM, "gemm", 1, 1), 60),
    ),
    "data-loading": (
        stepped(f"host 0-500 {LOADER}\n" + launched(1, MM, "gemm", 50, 1, 510), 600),
        stepped(f"host 0-2 {LOADER}\n" + queued(4, MM, "gemm", 145), 600),
    ),
    # The host waits 195 us for 200 us of work, and launches the next step after it.
    "synchronization": (
        stepped(WAITS + "host 215-330 train.py:9@log", 340),
        stepped(queued(2, MM, "gemm", 160), 330),
    ),
    "pageable-copies": (
        stepped(
            f"host 0-610 {COPY} > cuMemcpyHtoDAsync_v2#gpu_api ->1\ngpu 5-605 {COPY} > copy HtoD#memory <-1\n"
            + launched(1, MM, "gemm", 50, 1, 620),
            700,
        ),
        stepped(
            f"host 0-5 {COPY} > cuMemcpyHtoDAsync_v2#gpu_api ->1\ngpu 8-158 {COPY} > copy HtoD#memory <-1\n"
            + launched(1, MM, "gemm", 50, 1, 620),
            700,
        ),
    ),
    "host-fills": (
        stepped(
            f"host 0-20 {MAIN} > aten::ones#operator\nhost 20-70 {MOVES}\n"
            f"host 21-69 {MOVES} > cuMemcpyHtoDAsync_v2#gpu_api ->50\n"
            f"gpu 72-74 {MOVES} > copy HtoD#memory <-50 bytes=40000\n" + launched(1, MM, "gemm", 20, 1, 75),
            120,
        ),
        stepped(launched(1, f"{MAIN} > aten::ones#operator", "fill", 2, 1, 6), 60),
    ),
    "small-copies": (
        stepped(
            "\n".join(
                f"host {i * 20}-{i * 20 + 12} {COPY} > cuMemcpyHtoDAsync_v2#gpu_api ->{i + 1}\n"
                f"gpu {i * 20 + 13}-{i * 20 + 14} {COPY} > copy HtoD#memory <-{i + 1} bytes=1024"
                for i in range(20)
            ),
            420,
        ),
        stepped(
            f"host 0-5 {COPY} > cuMemcpyHtoDAsync_v2#gpu_api ->1\n"
            f"gpu 8-10 {COPY} > copy HtoD#memory <-1 bytes=20480\n" + queued(2, MM, "gemm", 100),
            300,
        ),
    ),
    "full-precision-matmul": (
        stepped(queued(4, MM, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma", 100), 420),
        stepped(queued(4, MM, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", 100), 420),
    ),
    "layout-conversions": (
        stepped(queued(4, MM, "cudnn::engines::nchwToNhwcKernel", 100), 420),
        stepped(queued(4, MM, "sm90_xmma_fprop_nhwc", 100), 420),
    ),
    "type-copies": (
        stepped(queued(4, COPY, "unrolled_elementwise_kernel<direct_copy_kernel_cuda>", 100), 420),
        stepped(queued(4, MM, "gemm", 100), 420),
    ),
    "unfused-elementwise": (
        stepped(queued(24, ADD, ELEMENTWISE, 20), 500),
        stepped(queued(24, ADD, "triton_poi_fused_add_mul_0", 20), 500),
    ),
    "unfused-attention": (
        stepped(queued(4, f"{ATTENTION} > aten::bmm#operator", "gemm", 100), 420),
        stepped(queued(4, FLASH, "flash_fwd_kernel", 100), 420),
    ),
    "optimizer-loop": (
        stepped(launched(40, STEP, ELEMENTWISE, 2, 10), 420),
        stepped(launched(2, STEP, "multi_tensor_apply_kernel<FusedAdam>", 20, 100), 420),
    ),
    "zero-grad": (
        stepped(launched(10, f"{ZERO} > aten::zero_#operator", "FillFunctor", 2, 20), 220),
        stepped(f"host 0-5 {ZERO}\n" + launched(10, MM, "gemm", 2, 20, 10), 220),
    ),
    # After each kernel of the backward pass two that look for NaN, and a wait for what they found.
    "anomaly-mode": (
        stepped(
            f"{launched(2, GRADIENT, 'gemm', 50, 200)}\n"
            f"{launched(2, f'{GRADIENT} > aten::isnan#operator', 'ne', 2, 200, 60)}\n"
            + "\n".join(f"host {i}-{i + 40} {GRADIENT} > aten::item#operator" for i in (100, 300)),
            420,
        ),
        stepped(launched(2, GRADIENT, "gemm", 50, 60) + f"\nhost 120-160 {MAIN} > aten::isnan#operator", 220),
    ),
    # Each convolution adds its bias, as cuDNN's does not, and sums up its gradient; a norm for each.
    "bias-before-norm": (
        stepped(f"{BIASES}\n{NORMS}", 220),
        stepped(f"{queued(4, f'{CONVOLUTION} > aten::cudnn_convolution#operator', 'gemm', 50)}\n{NORMS}", 220),
    ),
    "recomputed-activations": (
        stepped(queued(4, f"{GRADIENT} > [recompute]#state > aten::mm#operator", "gemm", 50), 220),
        stepped(queued(4, GRADIENT, "gemm", 50), 220),
    ),
    "fills": (
        stepped(launched(60, f"{MAIN} > aten::fill_#operator", "FillFunctor", 2, 10), 620),
        stepped(launched(10, f"{MAIN} > aten::fill_#operator", "FillFunctor", 2, 10), 620),
    ),
    "device-copies": (
        stepped(queued(4, COPY, "gemm", 50) + f"\ngpu 210-400 {COPY} > copy DtoD#memory", 420),
        stepped(queued(4, MM, "gemm", 100), 420),
    ),
    "allocator-churn": (
        stepped(f"host 0-300 {MAIN} > cudaFree#gpu_api\n" + launched(1, MM, "gemm", 50, 1, 310), 400),
        stepped(f"host 0-3 {MAIN} > cudaEventRecord#gpu_api\n" + queued(2, MM, "gemm", 190), 400),
    ),
    "exposed-communication": (
        stepped(queued(2, MM, "gemm", 100) + "\ngpu8 210-380 nccl > ncclDevKernel_AllReduce#kernel", 400),
        stepped(queued(2, MM, "gemm", 190) + "\ngpu8 10-180 nccl > ncclDevKernel_AllReduce#kernel", 400),
    ),
    "torch-recompilation": (
        stepped("\n".join(f"host {i}000-{i}990 {REGION}f train.py:3 (0/{i})#operator" for i in range(5))
                + "\n" + launched(1, MM, "gemm", 5, 1, 4990), 5020),
        stepped("host 0-1 Torch-Compiled Region: f train.py:3 (0/1)#operator\n" + launched(1, MM, "gemm", 5, 1, 9), 40),
    ),
    # A copy of 200 us and a kernel of 200 us; the repaired one copies on a stream of its own.
    "exposed-copies": (
        stepped(
            f"host 0-5 {COPY} > cuMemcpyHtoDAsync_v2#gpu_api ->1\ngpu 8-208 {COPY} > copy HtoD#memory <-1\n"
            f"gpu 208-408 {MM} > gemm#kernel",
            420,
        ),
        stepped(f"gpu8 8-208 {COPY} > copy HtoD#memory\n" + queued(4, MM, "gemm", 100), 420),
    ),
    "output-in-steps": (
        stepped(f"host 0-300 {MAIN} > {SAVE} > aten::copy_#operator\n" + launched(1, MM, "gemm", 50, 1, 310), 400),
        stepped(f"host 0-3 {MAIN} > {SAVE}\n" + queued(4, MM, "gemm", 100), 420),
    ),
    # 2 ms before each launch in which nothing was recorded.
    "host-code": (
        stepped(launched(1, MM, "gemm", 5, 1, 2000), 2100),
        stepped(queued(4, MM, "gemm", 100), 420),
    ),
    "double-precision": (
        stepped(queued(4, MM, "cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", 100), 420),
        stepped(queued(4, MM, "cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", 100), 420),
    ),
    "indexing-gradient": (
        stepped(queued(4, f"{MAIN} > IndexBackward0#operator", "at::native::indexing_backward_kernel", 100), 420),
        stepped(queued(4, f"{MAIN} > IndexSelectBackward0#operator", "at::native::indexFuncLargeIndex", 100), 420),
    ),
    "graph-breaks": (
        stepped(f"host 0-1 {REGION}f train.py:3 (0/0)#operator\nhost 2-3 {REGION}f train.py:5 after a graph break (1/0)"
                "#operator\n" + launched(1, MM, "gemm", 5, 1, 9), 40),
        stepped(f"host 0-1 {REGION}f train.py:3 (0/0)#operator\n" + launched(1, MM, "gemm", 5, 1, 9), 40),
    ),
    # 80 us of guards before a region of 50 us; the repaired one checks few.
    "guards": (
        stepped(f"host 0-80 {LOOKUP}\n" + launched(1, MM, "gemm", 50, 1, 82), 140),
        stepped(f"host 0-8 {LOOKUP}\n" + launched(1, MM, "gemm", 50, 1, 10), 70),
    ),
    # Ten gradients that are filled with zeros and added up; the repaired one puts rows together.
    "view-gradients": (
        stepped(queued(10, f"{ROW_GRADIENT} > aten::zeros#operator", "FillFunctor", 40) + "\n"
                + "\n".join(f"host {i}-{i + 4} {ROW_GRADIENT}" for i in range(50, 150, 10)), 420),
        stepped(queued(10, f"{MAIN} > UnbindBackward0#operator > aten::stack#operator", "CatArray", 40), 420),
    ),
    "host-callbacks": (
        stepped(f"host 20-220 {MAIN} > jit(step)#operator > [callback] factor\n"
                + launched(1, f"{MAIN} > jit(step)#operator", "fusion", 50, 1, 0), 300),
        stepped(launched(1, f"{MAIN} > jit(step)#operator", "fusion", 50, 1), 80),
    ),
    "eager-jax": (
        stepped(
            "\n".join(
                f"host {50 * i}-{50 * i + 40} {MAIN} > jit({name})#operator\n"
                + launched(1, f"{MAIN} > jit({name})#operator", name, 2, 1, 50 * i + 30)
                for i, name in enumerate("abcdef")
            ),
            320,
        ),
        stepped(launched(1, f"{MAIN} > jit(step)#operator", "fusion", 200, 1), 220),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", PAIRS)
def test_the_defect_is_found_and_the_repaired_program_is_fine(rule: str) -> None:
    broken, repaired = PAIRS[rule]
    (finding,) = found(broken, rule)
    assert finding.rule == rule
    assert found(repaired, rule) == []


@pytest.mark.parametrize(
    ("rule", "share"),
    [
        # Of 4010 us the GPU waits 38 us for each of 100 launches; a graph saves 0.8 of it.
        ("many-launches", 0.70),
        ("planning", 0.93),
        ("small-steps", 0.45),
        ("row-loop", 0.8),
        ("cpu-work", 0.86),
        ("data-loading", 0.75),
        ("full-precision-matmul", 0.72),
        ("layout-conversions", 0.96),
        ("exposed-communication", 0.30),
    ],
)
def test_the_gain_is_wall_time(rule: str, share: float) -> None:
    (finding,) = found(PAIRS[rule][0], rule)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(share, abs=0.03)


def test_a_kernel_that_hides_behind_the_host_gains_nothing() -> None:
    text = launched(4, MM, "sm80_xmma_gemm_f32f32_f32f32_f32_ffma", 20, 100)
    (finding,) = found(stepped(text, 420), "full-precision-matmul", 0.0)
    assert finding.gain is not None
    assert (finding.gain.share < 0.01, finding.gain.limit) == (True, "the host")


def test_a_jitted_call_that_two_slices_inside_of_each_other_show_is_one() -> None:
    calls = [f"{MAIN} > jit({name})#operator" for name in "abcdef"]
    text = "\n".join(
        f"host {50 * i}-{50 * i + 40} {call}\nhost {50 * i + 10}-{50 * i + 39} {call}\n"
        + launched(1, call, "fusion", 2 + i, 1, 50 * i + 30)
        for i, call in enumerate(calls)
    )
    (finding,) = found(stepped(text, 320), "eager-jax")
    assert finding.message.startswith("beside jit(f) each step calls 5 more jitted functions (jit(a), jit(b), jit(c)")


def test_what_jax_prints_from_a_jitted_function_is_found() -> None:
    call = f"{MAIN} > jit(step)#operator"
    text = f"host 20-220 {call} > debug_print#operator > debug_print.1#operator\n" + launched(1, call, "fusion", 50, 1)
    (finding,) = found(stepped(text, 300), "host-callbacks")
    assert finding.message.startswith("a jitted function calls back to Python (debug_print), 1 time a step")


def test_few_rows_of_a_tensor_and_their_gradients_are_fine() -> None:
    assert (
        found(stepped(queued(3, f"{ROW_GRADIENT} > aten::zeros#operator", "FillFunctor", 40), 220), "view-gradients")
        == []
    )


def test_rows_of_a_program_without_steps_are_counted_by_its_backward_passes() -> None:
    seeds = "host 0-1 train.py:9@main > _make_grads > aten::ones_like#operator\n"
    program = stepped(seeds + queued(10, f"{ROW_GRADIENT} > aten::zeros#operator", "FillFunctor", 40) + "\n"
                      + "\n".join(f"host {i}-{i + 1} {ROW_GRADIENT}" for i in range(50, 60)), 420)  # fmt: skip
    (finding,) = found(program, "view-gradients")
    assert finding.line == 3


@pytest.mark.parametrize("function", ["UnfoldBackward0", "AsStridedBackward0"])
def test_a_gradient_of_windows_that_overlap_is_found(function: str) -> None:
    (finding,) = found(
        stepped(queued(2, f"{MAIN} > {function}#operator", "unfold_backward", 100), 420), "view-gradients"
    )
    assert finding.message.startswith("gradients of windows that overlap in memory are added up")


@pytest.mark.parametrize(("each_us", "n_found"), [(100, 0), (400, 1)])
def test_a_batch_of_a_worker_that_is_ready_is_not_waited_for(each_us: int, n_found: int) -> None:
    loader = LOADER.replace("_SingleProcess", "_MultiProcessing")
    text = f"host 0-{each_us} {loader}\n" + launched(1, MM, "gemm", 50, 1, each_us + 10)
    assert len(found(stepped(text, each_us + 100), "data-loading")) == n_found


def test_operators_recorded_for_no_backward_pass_are_found() -> None:
    program = stepped(launched(10, MM, "gemm", 5, 40), 420)
    (finding,) = found(counting(program, 5000, 0), "unused-gradients")
    assert finding.message.startswith("autograd recorded 5,000 operators")
    assert (finding.file, finding.line) == ("train.py", 3)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(0.23, abs=0.03)  # 0.3 of the waits


@pytest.mark.parametrize(
    ("program", "made", "ran"),
    [
        (MM, 5000, 4500),
        (GRADIENT, 5000, 0),
        # A model that is called a few times.
        (MM, 80, 0),
        (MM, 0, 0),
    ],
)
def test_operators_that_are_recorded_for_a_backward_pass_are_fine(program: str, made: int, ran: int) -> None:
    assert found(counting(stepped(launched(10, program, "gemm", 5, 40), 420), made, ran), "unused-gradients") == []


def by_index(rows: int, joins: int, take: str = "aten::select") -> Profile:
    """A function that takes rows by their numbers, multiplies each, and puts so many results together."""
    function, lines = "train.py:2@main > train.py:{}@experts > {}#operator", []
    for at in range(20, 20 + 40 * rows, 40):
        product = function.format(10, "aten::mm")
        lines += [f"host {at}-{at + 2} {function.format(10, take)}", f"host {at + 3}-{at + 20} {product} ->{at}"]
        lines += [f"gpu {at + 25}-{at + 27} {product} > gemv#kernel <-{at}"]
    lines += [f"host {at}-{at + 1} {function.format(12, 'aten::stack')}" for at in range(joins)]
    return stepped("\n".join(lines), 60 + 40 * rows)


@pytest.mark.parametrize("take", ["aten::select", "aten::slice"])
def test_rows_that_a_function_takes_by_their_numbers_are_a_loop(take: str) -> None:
    (finding,) = found(by_index(16, 1, take), "row-loop")
    assert finding.message == "a loop takes 16 rows of a tensor one by one and launches 1 kernel for each"
    assert finding.line == 10


@pytest.mark.parametrize(("rows", "joins"), [(16, 16), (16, 0), (4, 1)], ids=["layers", "batches", "parts"])
def test_rows_of_other_calls_of_the_function_are_no_loop(rows: int, joins: int) -> None:
    assert found(by_index(rows, joins), "row-loop") == []


def test_parts_of_a_tensor_are_no_rows() -> None:
    assert found(by_row(3, 6), "row-loop") == []


@pytest.mark.parametrize(
    ("above", "n_found"),
    [
        ("[backward]#state > NllLossBackward0#operator", 0),
        ("/lib/torch/autograd/__init__.py:231@_make_grads > aten::ones_like#operator", 0),
        ("[backward]#state > ScanBackward#operator > train.py:30@backward", 1),  # a function of the program
    ],
)
def test_nobody_is_told_of_fills_that_the_backward_pass_makes_itself(above: str, n_found: int) -> None:
    profile = stepped(launched(60, f"{MAIN} > {above} > aten::fill_#operator", "FillFunctor", 2, 10), 620)
    assert len(found(profile, "fills")) == n_found


def test_a_module_that_fills_its_gradients_with_zeros_is_found() -> None:
    zeroes = f"{MAIN} > /lib/python3.12/site-packages/torch/nn/modules/module.py:2975@Module.zero_grad"
    (finding,) = found(stepped(launched(10, f"{zeroes} > aten::zero_#operator", "Fill", 2, 20), 210), "zero-grad")
    assert (finding.file, finding.line) == ("train.py", 3)


@pytest.mark.parametrize(("passes", "share"), [(1, 0.75), (2, 0.56), (0, 0.39)])
def test_zeros_cost_the_additions_of_the_first_backward_pass_of_a_step(passes: int, share: float) -> None:
    engine = f"{MAIN} > torch::autograd::AccumulateGrad#operator > aten::add_#operator"
    losses = f"{MAIN} > /lib/torch/autograd/__init__.py:231@_make_grads > aten::ones_like#operator"
    program = "\n".join(
        [
            launched(10, f"{ZERO} > aten::zero_#operator", "Fill", 2, 20),
            launched(10, engine, ELEMENTWISE, 2, 20, 200),
            *(f"host {at}-{at + 1} {losses}" for at in range(405, 405 + passes)),
        ]
    )
    (finding,) = found(stepped(program, 410), "zero-grad")
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(share, abs=0.01)
    assert ("the backward pass adds to them" in finding.message) == (passes > 0)


def test_biases_without_norms_are_needed() -> None:
    """As in a network without batch norms, or with one alone."""
    for norms in ("", NORMS.partition("\n")[0]):
        assert found(stepped(f"{BIASES}\n{norms}", 220), "bias-before-norm") == []


def test_the_line_is_that_of_the_program() -> None:
    (finding,) = found(PAIRS["many-launches"][0], "many-launches")
    assert (finding.file, finding.line) == ("train.py", 3)


def test_an_operator_that_calls_one_of_its_name_is_one_call() -> None:
    resize = f"{MAIN} > aten::resize#operator"
    text = f"host 0-900 {resize}\nhost 90-800 {resize} > aten::resize#operator\n" + launched(1, MM, "gemm", 50, 1, 910)
    (finding,) = found(stepped(text, 1000), "cpu-work")
    assert "0.9 ms at each of 19 calls" in finding.message


@pytest.mark.parametrize(("kind", "moved"), [("HtoD", "the next batch"), ("DtoH", "results")])
def test_copies_are_to_be_hidden_in_their_direction(kind: str, moved: str) -> None:
    text = f"""host 0-5 {COPY} > cuMemcpyAsync#gpu_api ->1
    gpu 8-208 {COPY} > copy {kind}#memory <-1
    gpu 208-408 {MM} > gemm#kernel"""
    (finding,) = found(stepped(text, 420), "exposed-copies")
    assert finding.hint.startswith(f"copy {moved} ")


def test_many_launches_are_found_at_their_line_not_at_one_of_them() -> None:
    profile, _ = PAIRS["many-launches"]
    (many,) = found(profile, "many-launches")
    assert many.node is not None
    assert profile.tree.label(many.node) == MAIN
    assert (many.file, many.line) == ("train.py", 3)


BEGINS = "/lib/python3.12/threading.py:1030@Thread._bootstrap"


@pytest.mark.parametrize(
    ("launching", "beside"),
    [("serve.py:12@main", f"{BEGINS} > serve.py:4@infer"), (f"{BEGINS} > serve.py:4@infer", "serve.py:12@main")],
    ids=["the main thread", "another thread"],
)
def test_code_of_the_thread_that_launches_keeps_the_gpu_waiting(launching: str, beside: str) -> None:
    mine, other = ("samples", "other") if "main" in launching else ("other", "samples")
    work = f"{launching} > serve.py:20@postprocess"
    text = f"{mine} 0-1800 {work}\n{other} 0-1990 {beside}\n"
    (finding,) = found(
        stepped(text + launched(1, f"{launching} > aten::mm#operator", "gemm", 5, 1, 2000), 2100), "host-code"
    )
    assert "this code of the host" in finding.message
    assert (finding.file, finding.line) == ("serve.py", 20)
