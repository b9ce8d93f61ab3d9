"""Arrays of JAX that were alive when most memory was in use, as nodes of the paths that made them."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from bragg.formats.captured.growth import Growth, padded
from bragg.formats.limits import Limits, next_depth
from bragg.formats.pprof import LabelledSample, labelled_samples
from bragg.model import FrameKind, Metric, MetricKind, Profile
from bragg.model.facts import Facts
from bragg.model.meta.gpu_memory import AT_PEAK, JAX_ARRAYS

_ABOVE = "[arrays of JAX]"
_GZIP_WINDOW = 31
_OF_JAX = ("jax/_src/", "jax\\_src\\")


def with_jax_memory(profile: Profile, limits: Limits) -> Profile:
    """The profile with `gpu_memory_peak` of JAX's arrays, below a node of their own, from META's snapshot.

    An array stands at the line of the program that made it: frames of JAX are left out. META keeps what was held, or
    why that is not known, instead of the snapshot.
    """
    told = Facts(profile.meta.get(JAX_ARRAYS))
    if "pprof" not in told:
        return profile
    kept: dict[str, Any] = {name: value for name, value in told.values().items() if name != "pprof"}
    try:
        arrays = [each for each in _samples(told.text("pprof"), limits) if each.labels.get("kind") == "buffer"]
    except (ValueError, OverflowError, zlib.error, binascii.Error) as error:
        return replace(profile, meta={**profile.meta, JAX_ARRAYS: {**kept, "reason": f"damaged: {error}"}})
    kept["held_bytes"] = sum(max(each.values.get("space", 0), 0) for each in arrays)
    profile = replace(profile, meta={**profile.meta, JAX_ARRAYS: kept})
    return _grown(profile, arrays, limits) if arrays else profile


def _samples(text: str, limits: Limits) -> list[LabelledSample]:
    reader = zlib.decompressobj(_GZIP_WINDOW)
    content = reader.decompress(base64.b64decode(text, validate=True), limits.content_bytes)
    if not reader.eof:
        raise ValueError("it breaks off, or is too large")
    found = labelled_samples(content, limits)
    next_depth(max((len(sample.stack) for sample in found), default=0) + 1)
    return found


def _grown(profile: Profile, arrays: list[LabelledSample], limits: Limits) -> Profile:
    growth = Growth(len(profile.tree), len(profile.tree.frames))
    held: Counter[int] = Counter()
    for array in arrays:
        node = growth.child(0, _ABOVE, kind=FrameKind.SCOPE)
        for kind, name, file, line in array.stack:
            if not any(part in file for part in _OF_JAX):
                node = growth.child(node, name, file, line, kind)
        held[node] += max(array.values.get("space", 0), 0)
    limits.check_metrics(1, growth.n_nodes)
    tree = growth.applied_to(profile.tree)
    metrics = {name: padded(metric, len(tree)) for name, metric in profile.metrics.items()}
    own = np.zeros(len(tree), np.int64)
    own[list(held)] = list(held.values())
    if AT_PEAK in metrics:
        own += metrics[AT_PEAK].own
    metrics[AT_PEAK] = Metric(AT_PEAK, "B", MetricKind.INCLUSIVE, own)
    return replace(profile, tree=tree, metrics=metrics)
