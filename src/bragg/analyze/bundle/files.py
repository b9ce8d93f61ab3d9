"""All that a profile has of one kernel, as files: for the authors of compilers, and for trying the kernel alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bragg.analyze.kernel_choice import KernelChoice, every_kernel, names_meant
from bragg.analyze.kernel_facts import configurations_of
from bragg.analyze.kernel_summary import summary_of
from bragg.code.source_map import KernelCode
from bragg.errors import UsageError
from bragg.model import Profile
from bragg.model.kernels.names import base_name

SCRIPT = "reproduce.py"
"""The file that compiles and times the kernel alone; bundles of kernels whose TTIR is not known have none."""

_SCRIPT_TEXT = Path(__file__).with_name("reproduce_kernel.py")


@dataclass(frozen=True)
class Bundle:
    """One kernel as files.

    Attributes:
        kernel: Its name.
        others: Names of other kernels that were meant as well.
        files: The texts of its code, `facts.json`, and a script that reproduces it, by the names of their files.
    """

    kernel: str
    others: list[str]
    files: Mapping[str, str]

    def write(self, directory: Path) -> None:
        """Write the files.

        Raises:
            OSError: A file cannot be written.
        """
        for name, text in self.files.items():
            (directory / name).write_text(text, encoding="utf-8")


def bundle_of(profile: Profile, name: str) -> Bundle:
    """A kernel whose code a profile has, as files.

    Args:
        profile: With the code of its kernels.
        name: Of a kernel, with its specialization or without, or a regular expression; of several kernels the one with
            most samples or GPU time is taken.

    Raises:
        UsageError: The profile has no code of such a kernel.
    """
    known = {kernel.name: (kernel, kernel.code) for kernel in every_kernel(profile) if kernel.code}
    meant = names_meant(list(known), name)
    if not meant:
        names = ", ".join(kernels_with_code(profile))
        hint = f"It has that of {names}" if names else "Record with bragg run, which keeps the code of Triton kernels"
        raise UsageError(f"the profile has no code of a kernel {name}", hint=hint)
    kernel, code = known[meant[0]]
    return Bundle(kernel.name, meant[1:], _files(profile, kernel, code))


def kernels_with_code(profile: Profile) -> list[str]:
    """Names of the kernels whose code the profile has, without their specializations, the hottest first."""
    return list(dict.fromkeys(base_name(kernel.name) for kernel in every_kernel(profile) if kernel.code))


def _files(profile: Profile, kernel: KernelChoice, code: KernelCode) -> Mapping[str, str]:
    texts = {f"kernel.{stage.value}": text for stage, text in code.texts.items()}
    script = {SCRIPT: _SCRIPT_TEXT.read_text(encoding="utf-8")} if "kernel.ttir" in texts else {}
    return {**texts, "facts.json": _facts(profile, kernel), **script}


def _facts(profile: Profile, kernel: KernelChoice) -> str:
    """What was compiled, how it was launched, and what was measured."""
    summary, configurations = summary_of(profile, kernel), configurations_of(profile)
    rows = dict.fromkeys(profile.tree.frame[kernel.nodes].tolist())
    ordinal = int(profile.tree.frames.device[next(iter(rows))])
    facts = {
        "name": kernel.name,
        **(asdict(summary.compiled) if summary.compiled else {}),
        "launches": [asdict(launch) for row in rows for launch in configurations.get(row, ())],
        "share_of_gpu_time": summary.share,
        "mean_ns": summary.time_ns / summary.launches if summary.launches else 0.0,
        "metrics": {name: float(metric.own[kernel.nodes].sum()) for name, metric in profile.metrics.items()},
        "device": dict(next(iter(profile.run.records_of_device(ordinal)), {})),
        "versions": dict(profile.run.versions),
    }
    return json.dumps(facts, indent=1, default=str) + "\n"
