"""64-bit floating point in kernels whose tiles are not of it."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import names_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

# H100 and A100 compute at half the rate in 64 bits, other boards at 1/32 and less: of the time at these lines.
_SAVED = 0.5
_CHANGE = "convert what is in 64 bits, .to(tl.float32), or make its tensor float32: NumPy's are float64 by default"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    if not compiled.doubles or compiled.accesses is None or any(each.element == "f64" for each in compiled.accesses):
        return None
    places = [each.place for each in compiled.doubles]
    wide = [each.name for each in compiled.arguments or () if "f64" in each.type]
    reason = f" because of {names_text(wide)}" if wide else ""
    share, is_measured = kernel.share_of_lines(places)
    return Defect(
        f"computes in 64-bit floating point{reason}, and loads and stores no tile of it",
        _CHANGE,
        share * _SAVED,
        Confidence.PROVEN,
        places,
        (
            Quantity("64-bit operations", sum(each.count for each in compiled.doubles)),
            Quantity("share of its samples" if is_measured else "share of its instructions", share, "share"),
        ),
        is_measured,
    )


RULE = kernel_rule("double-arithmetic", _judge, "64-bit floating point in Triton kernels without tiles of it", _CHANGE)
