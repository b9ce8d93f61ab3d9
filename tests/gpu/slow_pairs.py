"""Records slow programs and their repaired twins, and compares what `bragg analyze` says with what was measured.

python -m tests.gpu.slow_pairs DIRECTORY [default|trace] [NAME...]    keeps the recordings in DIRECTORY
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs" / "slow"
RULES = {
    "allocator": "allocator-churn",
    "anomalies": "anomaly-mode",
    "attention": "unfused-attention",
    "attention_weights": "unfused-attention",
    "averages": "operator-loop",
    "bags": "dense-embedding-gradient",
    "batch_loop": "row-loop",
    "callbacks": "host-callbacks",
    "causal_masks": "rebuilt-mask",
    "checkpoints": "recomputed-activations",
    "clipping": "synchronization",
    "conv_bias": "bias-before-norm",
    "cpu_work": "cpu-work",
    "cudnn_search": "planning",
    "distances": "pairwise-differences",
    "doubles": "double-precision",
    "embedding": "dense-embedding-gradient",
    "emptied_cache": "emptied-cache",
    "every_second": "uncoalesced-access",
    "exposed_copies": "exposed-copies",
    "few_workers": "data-loading",
    "float_convs": "full-precision-matmul",
    "graph_breaks": "graph-breaks",
    "growing_cache": "device-copies",
    "guards": "guards",
    "host_code": "host-code",
    "host_loop": "host-code",
    "indexing": "indexing-gradient",
    "inference_layout": "layout-conversions",
    "inverses": "explicit-inverse",
    "jax_checkpoints": "recomputed-activations",
    "jax_dispatch": "eager-jax",
    "jax_doubles": "double-precision",
    "jax_inputs": "pageable-copies",
    "jax_metrics": "eager-jax",
    "jax_one_hot": "one-hot",
    "jax_reads": "synchronization",
    "jax_shapes": "recompilation",
    "kept_losses": "memory-grows",
    "launches": "many-launches",
    "layout": "layout-conversions",
    "loader": "data-loading",
    "masked_rows": "synchronization",
    "met_warps": "waiting-line",
    "metric_copies": "synchronization",
    "module_zeros": "zero-grad",
    "new_functions": "recompilation",
    "no_grad": "unused-gradients",
    "odd_sizes": "unaligned-matmul",
    "one_hot": "one-hot",
    "one_wave": "few-blocks",
    "optimizer": "optimizer-loop",
    "output": "output-in-steps",
    "own_optimizer": "optimizer-loop",
    "pageable": "pageable-copies",
    "planning": "planning",
    "precision": "full-precision-matmul",
    "printed_tensors": "output-in-steps",
    "recompiled": "torch-recompilation",
    "rereads": "reread-memory",
    "resized": "cpu-work",
    "results_down": "exposed-copies",
    "row_gradients": "view-gradients",
    "scalar_tensors": "small-copies",
    "short_rows": "small-blocks",
    "small_blocks": "small-blocks",
    "small_collectives": "small-collectives",
    "small_copies": "small-copies",
    "sorts": "partial-sort",
    "specialized": "kernel-recompilation",
    "static_numbers": "torch-recompilation",
    "streams": "streams-in-turns",
    "sync": "synchronization",
    "timed_steps": "synchronization",
    "tuned_lengths": "kernel-autotuning",
    "type_copies": "type-copies",
    "unfused": "unfused-elementwise",
    "window": "device-copies",
    "window_gradients": "view-gradients",
    "worker_starts": "worker-starts",
    "zero_grad": "zero-grad",
    "zeros": "fills",
}
# Defects that a default recording does not show: calls of the GPU's API, when kernels ran, where warps waited.
OPTIONS = {
    "allocator": ("--gpu-api",),
    "kept_losses": ("--memory",),
    "met_warps": ("--sample",),
    "rereads": ("--counters", "dram"),
    "streams": ("--data", "trace"),
}
LIMIT_S = 120
MODES = {"trace": ("--data", "trace"), "default": ()}


def record(program: Path, output: Path, options: tuple[str, ...]) -> tuple[float, list[dict[str, Any]]]:
    """Wall time of the recorded run, and what is found in it."""
    own = OPTIONS.get(program.stem.rpartition("_")[0], ())
    start = time.monotonic()
    command = [sys.executable, "-m", "bragg", "run", *options, *own, "--regions", "all", "-o", str(output), "--force"]
    subprocess.run([*command, str(program)], capture_output=True, timeout=LIMIT_S, check=True)
    took_s = time.monotonic() - start
    job = output.with_suffix(".job")
    if job.is_dir():
        shutil.copy(job / "rank00000.bragg", output)
    command = [sys.executable, "-m", "bragg", "analyze", str(output), "--json", "--least-gain", "0"]
    printed = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True, text=True).stdout
    (profile,) = json.loads(printed)["profiles"]
    print(f"  {output.name}: {profile['bounds']['by']}, {took_s:.1f} s")
    for finding in profile["findings"]:
        gain = finding.get("gain") or {}
        share = f"{gain['share'] * 100:.1f} %" if gain else "n/a"
        print(f"    {share:>7} {finding['rule']}{place_of(finding)} {finding['message']}")
    if profile["skipped"]:
        print("    not judged:", ", ".join(profile["skipped"]))
    return profile["bounds"]["of_ns"], profile["findings"]


def place_of(finding: dict[str, Any]) -> str:
    """Where a finding of `bragg analyze --json` is; empty for one that is about the whole run."""
    return f" ({finding['file']}:{finding['line']})" if finding.get("line") else ""


def compare(name: str, directory: Path, modes: dict[str, tuple[str, ...]] | None = None) -> None:
    """Print whether the rule found the slow program alone, and its gain beside the measured one."""
    rule = RULES[name]
    for mode, options in (modes or MODES).items():
        found = {}
        for kind in ("slow", "fast"):
            output = directory / f"{name}_{kind}-{mode}.bragg"
            try:
                found[kind] = record(PROGRAMS / f"{name}_{kind}.py", output, options)
            except (subprocess.SubprocessError, ValueError) as error:
                print(f"  {output.name}: failed: {str(error)[-300:]} {getattr(error, 'stderr', b'')[-500:]!r}")
                return
        named = {kind: [each for each in findings if each["rule"] == rule] for kind, (_, findings) in found.items()}
        gain = ((named["slow"] or [{}])[0].get("gain") or {}).get("share")
        measured = 1 - found["fast"][0] / found["slow"][0] if found["slow"][0] else float("nan")
        verdict = f"slow {'found' if named['slow'] else 'MISSED'}, fast {'FALSE ALARM' if named['fast'] else 'silent'}"
        estimate = "n/a" if gain is None else f"{gain * 100:.0f} %"
        print(
            f"{name} [{mode}] {rule}: {verdict}; estimated gain {estimate}, measured {measured * 100:.0f} % of the span"
        )


def main() -> None:
    """All pairs in both modes, or what is named."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    chosen = {mode: MODES[mode] for mode in sys.argv[2:] if mode in MODES} or MODES
    for name in [name for name in sys.argv[2:] if name not in MODES] or RULES:
        compare(name, directory, chosen)


if __name__ == "__main__":
    main()
