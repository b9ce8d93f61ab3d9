"""What sampling the instructions of kernels costs, and whether it finds the lines that exact sampling finds.

`overhead`: bursts of a program as it is, recorded, and recorded with each way of sampling take turns in one process.
Sampling begins before a burst, untimed; what that takes, once, is `begin_s`. `second_half` is the share of the samples
that came in the second half of the burst, after an untimed look at them: half of them, if sampling goes on to the end.

`lines`: a program with known kernels (tests/gpu/programs/sampled.py) under each way of sampling. `serialized` knows the
launch of every sample: it is what the others are held against.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import harness

PROGRAM = Path(__file__).parents[1] / "tests" / "gpu" / "programs" / "sampled.py"
STEPS = {"dynamic_net": 6000, "gpt2_small": 300}
ROUNDS = {"dynamic_net": 5, "gpt2_small": 2}  # the GPU sets the pace of the second
WAYS: dict[str, dict[str, Any] | None] = {
    "bare": None,
    "recorded": {},
    "continuous": {"sampling": "continuous"},
    "windows": {"sampling": "windows", "sample_budget": 0.03},
}
MODES = ("serialized", "continuous", "windows")
KERNELS = ("matmul", "softmax")
PROGRAM_S = 8.0
TOP = 5
# Sampling begins on a thread of the recorder, a few tens of milliseconds after the first launch.
BEGINNING_S = 1.0


def measure_overhead(workload_name: str) -> list[dict[str, Any]]:
    """One row for each way, in this process."""
    from workloads import WORKLOADS

    workload = WORKLOADS[workload_name](steps=STEPS[workload_name])  # type: ignore[call-arg]
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    ways = list(WAYS)
    for number in range(ROUNDS[workload_name]):
        for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            found[way].append(_burst(workload, WAYS[way]))
    return [{"workload": workload_name, "way": way, **_summed_up(bursts, found)} for way, bursts in found.items()]


def _burst(workload: Any, options: dict[str, Any] | None) -> dict[str, Any]:
    """Seconds of one burst, and what the profile says of its samples."""
    import bragg

    def half() -> float:
        return harness.seconds(lambda: workload.run(nullcontext, workload.steps // 2))

    if options is None:
        workload.prepare()
        return {"seconds": half() + half()}
    with tempfile.TemporaryDirectory() as directory:
        session = bragg.start(f"{directory}/run.bragg", backend="cuda", context="shadow", kernel_code=False, **options)
        workload.prepare()
        time.sleep(BEGINNING_S)
        seconds = half()
        before = _samples(session.profile())
        seconds += half()
        profile = session.stop()
    sampling = profile.meta.get("sampling", {})
    device = sampling.get("devices", {}).get("0", {})
    samples = _samples(profile)
    return {
        "seconds": seconds,
        "begin_s": device.get("enabling_ns", 0) / 1e9,
        "samples": samples,
        "second_half": (samples - before) / samples if samples else 0.0,
        "exact": sampling.get("exact", 0) / samples if samples else 0.0,
        "period": device.get("period", 0),
        "restarts": device.get("restarts", 0),
        "reached": sampling.get("cycle", {}).get("reached", 0.0),
        "refused": device.get("reason", sampling.get("reason", "")),
    }


def _samples(profile: Any) -> int:
    return int(profile.total("num_samples")) if "num_samples" in profile.metrics else 0


def _summed_up(bursts: list[dict[str, Any]], found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians; ratios are those of bursts of the same round."""
    row: dict[str, Any] = {"rounds": len(bursts)}
    for base in ("bare", "recorded"):
        pairs = [(one["seconds"], each["seconds"]) for one, each in zip(found[base], bursts, strict=True)]
        row[f"to_{base}"] = round(harness.Ratio.of(pairs).median, 4)
    for key in bursts[0]:
        values = [burst[key] for burst in bursts]
        row[key] = values[-1] if isinstance(values[0], str) else round(statistics.median(values), 4)
    return row


def measure_lines() -> list[dict[str, Any]]:
    """For each kernel and mode its hottest lines, and how far they are from those of serialized sampling."""
    rows = []
    exact: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for mode in MODES:
            profile = _sampled_program(mode, Path(directory))
            shares = {**{kernel: _line_shares(profile, kernel) for kernel in KERNELS}, "paths": _path_shares(profile)}
            exact = exact or shares
            for what, found in shares.items():
                rows.append({"kernel": what, "mode": mode, **_compared(found, exact[what])})
    return rows


def _sampled_program(mode: str, directory: Path) -> Any:
    import bragg

    output = directory / f"{mode}.bragg"
    command = [sys.executable, "-m", "bragg", "run", f"--sample={mode}", "--sample-budget=20%", "-o", str(output)]
    subprocess.run([*command, str(PROGRAM), str(PROGRAM_S)], check=True, capture_output=True)
    return bragg.load(output)


def _line_shares(profile: Any, kernel: str) -> dict[str, float]:
    """Share of a kernel's samples by line of its own function."""
    from bragg.analyze.kernel_choice import choose_kernel
    from bragg.analyze.source_lines import annotate

    code = annotate(profile, choose_kernel(profile, kernel), None)
    counts = {str(line.number): line.samples.count for line in code.sections[0].lines if line.samples.count}
    return {line: count / code.total.count for line, count in counts.items()}


def _path_shares(profile: Any) -> dict[str, float]:
    """Share of the samples of the matmul by the scope that launches it."""
    tree = profile.tree
    samples = {
        tree.label(node): float(profile.inclusive("num_samples")[node])
        for node in range(len(tree))
        if tree.label(node) in ("small", "large")
    }
    return {path: count / sum(samples.values()) for path, count in samples.items()}


def _compared(found: dict[str, float], exact: dict[str, float]) -> dict[str, Any]:
    hottest = sorted(found, key=found.__getitem__, reverse=True)[:TOP]
    hottest_of_exact = sorted(exact, key=exact.__getitem__, reverse=True)[:TOP]
    places = {*hottest, *hottest_of_exact}
    return {
        "hottest": ", ".join(f"{place}: {found[place]:.1%}" for place in hottest),
        "same_hottest": set(hottest) == set(hottest_of_exact),
        "largest_difference": round(max(abs(found.get(place, 0) - exact.get(place, 0)) for place in places), 4),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=STEPS, help="measure one program, in this process")
    parser.add_argument("--only", choices=[*STEPS, "lines"], nargs="+", default=[*STEPS, "lines"])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.workload:
        sys.stdout.write(json.dumps({"rows": measure_overhead(arguments.workload)}) + "\n")
        return
    rows = []
    for workload in [name for name in arguments.only if name in STEPS]:
        found = harness.in_child([__file__, "--workload", workload], 600)
        rows += found.get("rows", [{"workload": workload, **found}])
    if "lines" in arguments.only:
        rows += measure_lines()
    harness.report("sampling", rows, arguments.out)


if __name__ == "__main__":
    main()
