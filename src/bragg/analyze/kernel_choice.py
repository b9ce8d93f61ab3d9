"""Which kernel a user means, and the texts that a profile has of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bragg.code.source_map import KernelCode, code_of_kernels
from bragg.errors import NothingRecorded, UsageError
from bragg.model import FrameKind, Profile
from bragg.model.ids import NodeId
from bragg.model.kernels.names import base_name

NO_CODE = (
    "No kernel of this profile has code: those of Triton have, those of libraries (cuBLAS, ATen, XLA) have none; "
    "time by line: bragg view"
)
"""What to do where no kernel of a profile has code."""


@dataclass(frozen=True)
class KernelChoice:
    """A kernel of a profile.

    Attributes:
        name: As its frames are named.
        nodes: Its nodes.
        code: Its texts; None when the profile has none.
        others: Names of other kernels that were meant as well.
    """

    name: str
    nodes: list[NodeId]
    code: KernelCode | None
    others: list[str]


def choose_kernel(profile: Profile, wanted: str | None) -> KernelChoice:
    """The kernel that a user means: of several the one with most samples, or with most GPU time.

    Args:
        profile: Where it ran.
        wanted: Its name, its name without the specialization, or an expression to be searched for; None: any, if
            possible one whose code the profile has.

    Raises:
        UsageError: No kernel is called so.
        NothingRecorded: The profile has no kernels.
    """
    kernels = _kernels_by_heat(profile)
    if not kernels:
        raise NothingRecorded(
            "this profile has no kernels", hint="Record it on a GPU; where the host's time went: bragg view"
        )
    codes = code_of_kernels(profile.sources)
    with_code = [name for name in kernels if _code_of(profile, name, codes)]
    with_text = with_code or [name for name in kernels if checked_lines(profile, name)]
    meant = (with_text or list(kernels))[:1] if wanted is None else names_meant(list(kernels), wanted)
    if not meant:
        raise UsageError(f"no kernel is called {wanted!r}", hint=_with_code(with_code))
    return KernelChoice(meant[0], kernels[meant[0]], _code_of(profile, meant[0], codes), meant[1:])


def has_shown_kernel(profile: Profile) -> bool:
    """Whether there is a kernel of which some text can be shown."""
    return any(choice.code or checked_lines(profile, choice.name) for choice in every_kernel(profile))


def why_no_code(profile: Profile) -> str:
    """Which kernels have code, where one has none."""
    codes = code_of_kernels(profile.sources)
    return _with_code([name for name in _kernels_by_heat(profile) if _code_of(profile, name, codes)])


def _with_code(names: Sequence[str]) -> str:
    return f"Those with code: {', '.join(names[:5])}" if names else NO_CODE


def every_kernel(profile: Profile) -> list[KernelChoice]:
    """All kernels, the one with most samples or GPU time first."""
    codes = code_of_kernels(profile.sources)
    kernels = _kernels_by_heat(profile)
    return [KernelChoice(name, nodes, _code_of(profile, name, codes), []) for name, nodes in kernels.items()]


def _kernels_by_heat(profile: Profile) -> dict[str, list[NodeId]]:
    """Nodes of each kernel by name, the one with most samples or GPU time first."""
    nodes: dict[str, list[NodeId]] = defaultdict(list)
    frames = profile.tree.frames
    for node in np.flatnonzero(profile.tree.kind == FrameKind.KERNEL).tolist():
        nodes[frames.name[profile.tree.frame[node]]].append(node)
    metrics = [name for name in ("num_samples", "gpu_time") if name in profile.metrics]

    def heat(name: str) -> list[float]:
        return [float(profile.inclusive(metric)[nodes[name]].sum()) for metric in metrics]

    return {name: nodes[name] for name in sorted(nodes, key=heat, reverse=True)}


def names_meant(names: Sequence[str], wanted: str) -> list[str]:
    """Those that are called so; else those that are without their specialization; else those that it is found in.

    Args:
        names: Of kernels.
        wanted: A name, or a regular expression.

    Raises:
        UsageError: It is no regular expression.
    """
    try:
        expression = re.compile(wanted)
    except re.error as error:
        raise UsageError(f"{wanted!r} is not a regular expression: {error}") from error
    candidates = (
        [name for name in names if name == wanted],
        [name for name in names if base_name(name) == wanted],
        [name for name in names if expression.search(name)],
    )
    return next(filter(None, candidates), [])


def _code_of(profile: Profile, name: str, codes: dict[str, KernelCode]) -> KernelCode | None:
    key = profile.fact("attributes", name, "code")
    if isinstance(key, str):
        return codes.get(key)
    return next((code for code in codes.values() if code.symbol == base_name(name)), None)


def checked_lines(profile: Profile, name: str) -> set[tuple[str, int]]:
    """Files and lines that checks found something at in a kernel, whose text the profile has."""
    kernel = base_name(name)
    return {(one.file, one.line) for one in profile.carried if one.kernel == kernel and one.file in profile.sources}


def why_absent(profile: Profile, kernel: KernelChoice) -> str:
    """Why texts of a kernel are missing from the profile; empty if the profile gives no reason."""
    reason = profile.fact("kernel_code", str(profile.fact("attributes", kernel.name, "code")))
    return reason if isinstance(reason, str) else ""
