"""What `--counters` takes beside the metrics of CUPTI, as the native core names it (`counter_metrics.cpp`)."""

from __future__ import annotations

import difflib

from bragg.errors import UsageError

SETS = ("default", "dram", "tensor", "l2", "units", "nvlink", "pcie")
COUNTERS = (
    *("dram_read", "dram_write", "tensor_active", "sm_active", "occupancy", "instructions", "gpc_clock"),
    *("l2_busy", "l1_busy", "pipe_busy", "l2_sectors", "l2_hit_rate"),
    *("nvlink_receive", "nvlink_send", "pcie_read", "pcie_write"),
)
# Of single launches alone: what floating-point operations follow from (`exact_metrics.cpp`).
_FLOP = "flop"
# `dram__bytes_read.sum`: which of them there are only CUPTI knows.
_MARK_OF_CUPTI = "__"


def check_counter_names(names: str, *, of_launches: bool = False) -> None:
    """Refuse what is no name of a set or a counter, and cannot be one of CUPTI's.

    Args:
        names: Separated by commas.
        of_launches: They are counted for single launches, not sampled.

    Raises:
        UsageError: It names the nearest.
    """
    counters = (*COUNTERS, _FLOP) if of_launches else COUNTERS
    known = (*SETS, *counters)
    for name in filter(None, names.split(",")):
        if name in known or _MARK_OF_CUPTI in name:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"there is no counter {name!r}",
            hint=f"{meant}Sets: {', '.join(SETS)}; counters: {', '.join(counters)}; CUPTI's: bragg doctor --counters",
        )
