"""How much slower programs become under each profiler. Every case is a child process of its own.

In a child, bursts without and with the contender alternate; a burst lasts about 0.3 to 0.6 s. The contender attaches
before each of its bursts and detaches after it, outside the timed region, and the program warms up again after either.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import harness

# The goals first, so that a time limit cuts what is there for comparison.
CASES = [
    *((workload, contender) for workload in ("dynamic_net", "tiny_triton") for contender in ("floor", "bragg_shadow")),
    ("tiny_triton", "bragg_python"),
    ("gpt2_small", "bragg_shadow"),
    ("graph_replay", "bragg_shadow"),
    ("dynamic_net", "bragg_python"),
    ("dynamic_net", "bragg_native"),
    ("gpt2_small", "bragg_python"),
    *((workload, "bragg_default") for workload in ("dynamic_net", "gpt2_small")),
    *(("dynamic_net", contender) for contender in ("bragg_gpu_sync", "bragg_gpu_api")),
    *((workload, "floor") for workload in ("gpt2_small", "graph_replay")),
    *((workload, "proton_shadow") for workload in ("dynamic_net", "tiny_triton", "gpt2_small", "graph_replay")),
    *((workload, "proton_python") for workload in ("dynamic_net", "tiny_triton")),
    *((workload, "torch_cuda") for workload in ("dynamic_net", "tiny_triton", "gpt2_small", "graph_replay")),
    *((workload, "bragg_trace") for workload in ("dynamic_net", "graph_replay")),
    ("dynamic_net", "torch_cpu_cuda"),
]


def measure(workload_name: str, contender_name: str, budget_s: float) -> dict[str, Any]:
    """One case, in this process."""
    from contenders import CONTENDERS, scratch_directory
    from workloads import WORKLOADS

    workload = WORKLOADS[workload_name]()
    with scratch_directory() as directory:
        contender = CONTENDERS[contender_name](Path(directory))
        attach_s: list[float] = []
        detach_s: list[float] = []

        def without() -> float:
            workload.prepare()
            return harness.seconds(lambda: workload.run(nullcontext))

        def with_contender() -> float:
            attach_s.append(harness.seconds(contender.attach))
            try:
                workload.prepare()
                return harness.seconds(lambda: workload.run(contender.scope))
            finally:
                detach_s.append(harness.seconds(contender.detach))

        never_attached_s = min(without() for _ in range(3))
        pairs = harness.alternate(without, with_contender, budget_s=budget_s)

    ratio = harness.Ratio.of(pairs)
    return {
        **harness.ratio_row(ratio),
        "added_ns_per_launch": round(1e9 * (ratio.median - 1) * ratio.without_s / workload.launches),
        "detached_to_never_attached": round(min(pair[0] for pair in pairs) / never_attached_s, 4),
        "attach_s": round(sorted(attach_s)[len(attach_s) // 2], 4),
        "detach_s": round(sorted(detach_s)[len(detach_s) // 2], 4),
    }


def measure_all(budget_s: float, limit_s: float) -> list[dict[str, Any]]:
    """All cases, each in a child; those that no time is left for are listed as such."""
    deadline = time.monotonic() + limit_s
    rows = []
    for workload, contender in CASES:
        left_s = deadline - time.monotonic()
        argv = [__file__, "--workload", workload, "--contender", contender, "--seconds", f"{budget_s}"]
        result = harness.in_child(argv, min(left_s, 20 * budget_s)) if left_s > 0 else {"error": "no time was left"}
        rows.append({"workload": workload, "contender": contender, **result})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Measure one case (as a child) or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--seconds", type=float, default=6, help="time for the pairs of one case")
    parser.add_argument("--limit", type=float, default=3600, help="time for all cases, s")
    parser.add_argument("--workload", help="this one alone, with --contender")
    parser.add_argument("--contender")
    arguments = parser.parse_args()
    if arguments.workload:
        print(json.dumps(measure(arguments.workload, arguments.contender, arguments.seconds)))
        return
    harness.report("overhead", measure_all(arguments.seconds, arguments.limit), arguments.out)


if __name__ == "__main__":
    main()
