"""All that a profile has of one kernel, as files: for the authors of compilers, and for trying the kernel alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.hot_kernels import HotKernel, hot_kernels
from bragg.code.source_map import code_of_kernels
from bragg.errors import UsageError
from bragg.model import Profile

__all__ = ["bundle_of", "kernels_with_code"]

_SCRIPT = Path(__file__).with_name("reproduce_kernel.py")


def bundle_of(profile: Profile, name: str) -> Mapping[str, str]:
    """The texts of a kernel's code, `facts.json`, and a script that reproduces it, by the names of their files.

    Args:
        profile: With the code of its kernels.
        name: Of a kernel, with its specialization or without; of several the one with most GPU time is taken.

    Raises:
        UsageError: The profile has no code of such a kernel.
    """
    known = _known_kernels(profile)
    found = next((kernel for kernel in known if kernel.compiled and name in (kernel.name, kernel.base)), None)
    if found is None or found.compiled is None:
        names = ", ".join(kernels_with_code(profile))
        hint = f"It has that of {names}" if names else "Record with bragg run, which keeps the code of Triton kernels"
        raise UsageError(f"the profile has no code of a kernel {name}", hint=hint)
    code = code_of_kernels(profile.sources)[found.compiled.key]
    texts = {f"kernel.{stage.value}": text for stage, text in code.texts.items()}
    script = {"reproduce.py": _SCRIPT.read_text(encoding="utf-8")} if "kernel.ttir" in texts else {}
    return {**texts, "facts.json": _facts(profile, found), **script}


def kernels_with_code(profile: Profile) -> list[str]:
    """Names of the kernels whose code the profile has, without their specializations, the hottest first."""
    return list(dict.fromkeys(kernel.base for kernel in _known_kernels(profile) if kernel.compiled))


def _known_kernels(profile: Profile) -> Sequence[HotKernel]:
    evidence = Evidence(profile)
    return hot_kernels(profile, evidence.gpu_ns, evidence.kernels, evidence.compiled, 0.0)


def _facts(profile: Profile, kernel: HotKernel) -> str:
    """What was compiled, how it was launched, and what was measured."""
    compiled = asdict(kernel.compiled) if kernel.compiled else {}
    facts = {
        "name": kernel.name,
        **compiled,
        "launches": [asdict(launch) for launch in kernel.launches],
        "share_of_gpu_time": kernel.share,
        "mean_ns": kernel.mean_ns,
        "metrics": {name: float(metric.own[kernel.nodes].sum()) for name, metric in profile.metrics.items()},
        "device": dict(kernel.device),
        "versions": dict(profile.run.versions),
    }
    return json.dumps(facts, indent=1, default=str) + "\n"
