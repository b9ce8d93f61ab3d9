"""What took the time of a run outside of its steady state: imports, compilation, and what ran at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.frameworks import uses_jax_alone
from bragg.analyze.causes.paths import IMPORTS, TRITON_TUNER, below, hottest_place, in_files, named
from bragg.analyze.wall.steady import covered_ns, during
from bragg.analyze.wall.wall_time import WallParts
from bragg.grouping.hlo_names import COMPILE
from bragg.model import FrameKind, Place
from bragg.model.kernels.names import base_name
from bragg.model.table import BoolArray, FloatArray

# A steady state of less of the run is no answer to why it takes long.
_SHORT = 0.5
# Of the run: less is not worth a name.
_NAMED = 0.05
_COMPILATION = "compilation"
_JAX_CACHE = "JAX_COMPILATION_CACHE_DIR=DIR keeps what was compiled for later runs"
_TORCH_CACHES = "TORCHINDUCTOR_CACHE_DIR and TRITON_CACHE_DIR on a lasting disk keep what was compiled"
_ENDS_WORKERS = "shutdown_compile_workers"
_NO_WORKERS = "TORCHINDUCTOR_COMPILE_THREADS=1 starts no processes to wait for"
_MODULE = "<module>"


@dataclass(frozen=True)
class Took:
    """What took time.

    Attributes:
        name: What it is: `imports`, `compilation`, `the end`.
        time_ns: Wall time.
        place: The line with most of it.
        what: The function that ran, where the line tells nothing; empty: it does.
    """

    name: str
    time_ns: float
    place: Place
    what: str = ""


@dataclass(frozen=True)
class RestOfRun:
    """The run apart from a short steady state.

    Attributes:
        share: Of the steady state, of the run: 0 to 1.
        took: What took most of the rest, the largest first; empty: not known.
        changes: How later runs take less time, in sentences.
    """

    share: float
    took: tuple[Took, ...]
    changes: tuple[str, ...]


def rest_of_run(evidence: Evidence) -> RestOfRun | None:
    """What took most of a run whose steady state is short; None: it is not, or not known."""
    parts = evidence.parts
    if parts is None or parts.steady is None or parts.steady.duration_ns >= _SHORT * parts.wall_ns:
        return None
    found = sorted(_took(evidence, parts), key=lambda each: -each.time_ns)
    took = tuple(each for each in found if each.time_ns >= _NAMED * parts.wall_ns)
    is_jax = "jax" in evidence.profile.run.versions or uses_jax_alone(evidence.profile)
    changes = [_JAX_CACHE if is_jax else _TORCH_CACHES for each in took if each.name == _COMPILATION]
    changes += [_NO_WORKERS for each in took if each.what == _ENDS_WORKERS]
    return RestOfRun(parts.steady.duration_ns / parts.wall_ns, took, tuple(changes))


@dataclass(frozen=True)
class KernelsOutside:
    """Kernels of the program that ran outside of its steady state alone.

    Attributes:
        names: Without their specializations, the one with most time first.
        share: Of the GPU time of the run, 0 to 1.
    """

    names: tuple[str, ...]
    share: float


def kernels_outside(evidence: Evidence) -> KernelsOutside | None:
    """Triton kernels that no rule has judged, as they did not run in the steady state; None: little or none."""
    profile, tree = evidence.profile, evidence.profile.tree
    if not (evidence.is_steady or evidence.of_steady) or "gpu_time" not in profile.metrics:
        return None
    run_ns = np.nan_to_num(profile.own("gpu_time").astype(np.float64))
    is_tuned = below(profile, in_files(profile, TRITON_TUNER))
    n_frames, frames = len(tree.frames), tree.frames
    in_run, in_steady = (
        np.bincount(tree.frame, np.where(is_tuned, 0.0, ns), n_frames) for ns in (run_ns, evidence.gpu_ns)
    )
    has_code = np.isin(np.array(frames.name), list(evidence.compiled.names)) & (frames.kind == FrameKind.KERNEL)
    found = np.flatnonzero(has_code & (in_run > 0) & (in_steady == 0))
    if in_run[found].sum() < _NAMED * run_ns.sum():
        return None
    ordered = found[np.argsort(-in_run[found], kind="stable")]
    names = tuple(dict.fromkeys(base_name(frames.name[row]) for row in ordered.tolist()))
    return KernelsOutside(names, float(in_run[found].sum() / run_ns.sum()))


def _took(evidence: Evidence, parts: WallParts) -> Iterator[Took]:
    profile = evidence.profile
    if parts.steady is None or "host_time" not in profile.metrics:
        return
    host_ns = np.nan_to_num(profile.own("host_time").astype(np.float64))
    imports = below(profile, in_files(profile, IMPORTS))
    before_ns = parts.steady.begins_ns - parts.began_ns
    imports_ns = min(float(host_ns[imports].sum()), before_ns)
    yield Took("imports", imports_ns, _statement(evidence, imports, host_ns))
    compiling = evidence.compiling & ~imports
    compiled_ns = min(_compiled_ns(evidence, parts, compiling, host_ns), before_ns - imports_ns)
    yield Took(_COMPILATION, compiled_ns, _statement(evidence, compiling, host_ns))
    yield from _at_the_end(evidence, parts, host_ns)


def _statement(evidence: Evidence, nodes: BoolArray, host_ns: FloatArray) -> Place:
    """The line that enters these nodes with most of their time."""
    tree = evidence.profile.tree
    outermost = nodes & ~nodes[np.maximum(tree.parent, 0)]
    return hottest_place(evidence.profile, outermost, tree.sum_up(np.where(nodes, host_ns, 0.0)))


def _compiled_ns(evidence: Evidence, parts: WallParts, compiling: BoolArray, host_ns: FloatArray) -> float:
    """How long the program compiled: XLA does so in many threads side by side, whose times are no wall time."""
    profile = evidence.profile
    of_xla = compiling & below(profile, named(profile, lambda name: name.startswith(COMPILE)))
    sampled_ns = max(float(host_ns[compiling & ~of_xla].sum()) - _waited_in_steady_ns(evidence, compiling), 0.0)
    if len(profile.slices) and parts.steady is not None:
        slices = during(profile.slices, parts.began_ns, parts.steady.begins_ns)
        return sampled_ns + covered_ns(slices.take(of_xla[slices.node]))
    return sampled_ns + min(float(host_ns[of_xla].sum()), float(evidence.waits_of_run_ns[of_xla].sum()))


def _waited_in_steady_ns(evidence: Evidence, compiling: BoolArray) -> float:
    """How long GPUs waited in the steady state for what may be compilation: samples do not tell when it was."""
    if evidence.idle_ns is None or not evidence.of_steady:
        return 0.0
    return float(np.where(compiling, evidence.idle_ns, evidence.code_wait_ns).sum())


def _at_the_end(evidence: Evidence, parts: WallParts, host_ns: FloatArray) -> Iterator[Took]:
    """What Python calls when the program has ended, if it takes most of the teardown."""
    profile, tree = evidence.profile, evidence.profile.tree
    total_ns = tree.sum_up(host_ns)
    is_called = (tree.parent == 0) & (tree.kind == FrameKind.PYTHON) & ~named(profile, _MODULE.__eq__)
    is_called[0] = False
    teardown_ns = parts.ended_ns - parts.rested_ns
    node = int(np.where(is_called, total_ns, 0).argmax())
    if is_called[node] and total_ns[node] > teardown_ns / 2 and not parts.gpu_after:
        frame = int(tree.frame[node])
        place = Place(tree.frames.file[frame], int(tree.frames.line[frame]))
        yield Took("the end", min(float(total_ns[node]), teardown_ns), place, tree.frames.name[frame])
