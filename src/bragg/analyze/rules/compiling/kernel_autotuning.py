"""Triton's autotuner that tunes a kernel again and again, for each new value of its key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.needs import GPU_TIME, HOST_TIME
from bragg.analyze.causes.paths import TRITON_TUNER, below, hottest_place, in_files, named
from bragg.analyze.engine import Rule
from bragg.model import Confidence, Finding, FrameKind, Gain, Quantity, Severity
from bragg.model.kernels.names import base_name

# What `do_bench` takes for one configuration, of which 25 ms to warm up: its defaults.
_BENCH_NS = 125_000_000
_OFTEN = 3
_CHANGE = "fewer values in key= (round sizes up to powers of two), or triton.Config chosen by hand; cache_results=True"


def _find(evidence: Evidence) -> Iterator[Finding]:
    profile, tree = evidence.profile, evidence.profile.tree
    benches = in_files(profile, TRITON_TUNER) & named(profile, lambda name: name.endswith("._bench"))
    inside = below(profile, benches)
    kernels = np.flatnonzero(inside & (tree.kind == FrameKind.KERNEL))
    names = {tree.frames.name[tree.frame[node]] for node in kernels.tolist()}
    versions = {name for name in names if base_name(name) != name}
    gpu_ns = np.nan_to_num(profile.own("gpu_time").astype(np.float64))
    host_ns = np.nan_to_num(profile.own("host_time").astype(np.float64))
    took_ns = float(host_ns[inside].sum())
    n_tunings = took_ns / (_BENCH_NS * len(versions)) if versions else 0.0
    if n_tunings < _OFTEN:
        return
    place, wall_ns = hottest_place(profile, inside, gpu_ns), profile.run.duration_ns
    bases = sorted({base_name(name) for name in versions})
    yield Finding(
        "kernel-autotuning",
        Severity.WARNING,
        f"the autotuner takes {took_ns / 1e9:.2g} s for {len(versions)} configurations of {', '.join(bases[:3])}: "
        f"about {n_tunings:.0f} times, for each new value of its key",
        _CHANGE,
        node=place.node,
        kernel=bases[0],
        file=place.file,
        line=place.line,
        evidence=(Quantity("time of the autotuner", took_ns, "ns"), Quantity("configurations", len(versions))),
        gain=Gain(took_ns * (1 - 1 / n_tunings), wall_ns, is_once=True) if wall_ns else None,
        confidence=Confidence.LIKELY,
    )


RULE = Rule(_find, "kernels that Triton's autotuner tunes again and again", (GPU_TIME, HOST_TIME), (), _CHANGE)
