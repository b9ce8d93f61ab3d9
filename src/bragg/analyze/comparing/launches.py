"""How often the main kernel of two runs was launched: sums compare these runs only where it was about as often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.analyze.comparing.comparison import Comparison
from bragg.model.ids import FrameId, NodeId

# Fewer more or fewer launches may be those of a few steps of the warm-up.
_UNLIKE = 1.2


@dataclass(frozen=True)
class Launches:
    """Launches of one kernel.

    Attributes:
        frame: The kernel.
        before: How often it was launched; `after`: in the other run.
        mean_before_ns: What one took; `mean_after_ns`: in the other run.
    """

    frame: FrameId
    before: int
    after: int
    mean_before_ns: float
    mean_after_ns: float


def unlike_launches(kernels: Comparison) -> Launches | None:
    """Those of the kernel that takes most of both runs; None: they are about as many, or not known.

    Args:
        kernels: A comparison of GPU time by kernel.
    """
    shared_ns = np.minimum(kernels.before, kernels.after)
    shared_ns[0] = 0
    node = NodeId(int(shared_ns.argmax()))
    n_before, n_after = (float(counts[node]) for counts in (kernels.count_before, kernels.count_after))
    is_counted = shared_ns[node] > 0 and n_before > 0 and n_after > 0
    if not is_counted or max(n_before, n_after) < _UNLIKE * min(n_before, n_after):
        return None
    means = (float(values[node]) / count for values, count in ((kernels.before, n_before), (kernels.after, n_after)))
    return Launches(kernels.tree.frame_of(node), round(n_before), round(n_after), *means)
