"""Products of tiles that no tensor core computes."""

from __future__ import annotations

from bragg.analyze.causes.least_time import multiplying_ns
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule
from bragg.model.kernels.compiled import TensorCores

# Products of 4096 take an H100 0.18 of the time in TF32; of other programs, their floating-point operations tell.
_SAVED = 0.75
_FIRST_TF32 = 80
_CHANGE = 'input_precision="tf32" for tl.dot, or "tf32x3" where that is too coarse; or operands in bfloat16 or float16'


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    dots = [each for each in compiled.dots or () if each.operand == "f32"]
    has_tf32 = compiled.arch.isdecimal() and int(compiled.arch) >= _FIRST_TF32
    if not dots or compiled.tensor_cores is not TensorCores.NONE or not has_tf32:
        return None
    least_ns = multiplying_ns(kernel, compiled)
    worst = max(dots, key=lambda each: (each.in_loop, each.m * each.n * each.k))
    return Defect(
        f"multiplies tiles of float32 ({worst.m}x{worst.k} by {worst.k}x{worst.n}) without tensor cores, "
        f'with input_precision="{worst.precision}"',
        _CHANGE,
        _SAVED if least_ns is None else max(1 - least_ns / kernel.mean_ns, 0.0),
        Confidence.PROVEN,
        [each.place for each in (worst, *dots)],
        (Quantity("instructions of tensor cores", 0), Quantity("products of tiles", len(dots))),
    )


RULE = kernel_rule(
    "dot-without-tensor-cores", _judge, "products of float32 tiles in Triton kernels without tensor cores", _CHANGE
)
