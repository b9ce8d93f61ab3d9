"""Kernels that print."""

from __future__ import annotations

from bragg.analyze.causes.kernel_finding import counted_text
from bragg.analyze.rules.kernel_rule import CompiledKernel, Confidence, Defect, HotKernel, Quantity, kernel_rule

_CHANGE = "remove tl.device_print, or put it behind a tl.constexpr; tl.device_assert is compiled with debug=True alone"


def _judge(kernel: HotKernel, compiled: CompiledKernel) -> Defect | None:
    places = compiled.prints or ()
    if not places:
        return None
    share, is_measured = kernel.share_of_lines(places)
    return Defect(
        f"has {counted_text(len(places), 'call')} that print or check: each of its threads formats and waits for it",
        _CHANGE,
        share if is_measured else None,
        Confidence.PROVEN,
        places,
        (
            Quantity("calls", len(places)),
            Quantity("share of its samples" if is_measured else "share of its instructions", share, "share"),
        ),
        is_measured,
    )


RULE = kernel_rule("kernel-prints", _judge, "Triton kernels that print, or check with assertions", _CHANGE)
