"""Instruction samples and counts of a capture: nodes of lines and instructions below kernels, with their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg.code.sampled_function import SampledFunction
from bragg.code.source_place import CallChain
from bragg.code.stall_reasons import VENDOR_PREFIX, StallReason, parse_vendor_name
from bragg.formats.captured.chunks import ChunkType
from bragg.formats.captured.growth import Growth, padded
from bragg.formats.captured.profile import LOST, resolve
from bragg.formats.captured.tables import CaptureTables, Columns, last_rows
from bragg.formats.limits import Limits
from bragg.model import CallTree, Metric, MetricKind, Profile
from bragg.model.kernels.counted import is_counted_by_instruction

TYPE_CHECKING = False  # Viewing needs no reader of code, which takes 30 ms to import.
if TYPE_CHECKING:
    from bragg.code.reading import CodeWish


# The recorder's name for the node of samples whose launch it did not see.
WITHOUT_LAUNCH = "<samples without a launch>"
_SAMPLES, _STALLED, _APPORTIONED = "num_samples", "num_stalled_samples", "num_samples_apportioned"

_Chains = Mapping[tuple[int, int], Mapping[int, CallChain]]


def with_samples(profile: Profile, tables: CaptureTables, code: CodeWish | None, limits: Limits) -> Profile:
    """The profile with its instruction samples and counts, in new nodes after the others, and the texts of its kernels.

    Args:
        profile: All else of the capture.
        tables: The capture.
        code: How much of it is read; None: instructions are directly below their kernels, and there are no texts.
        limits: Of the file.

    Raises:
        ValueError: There are too many reasons for its size.
    """
    rows = last_rows(tables.samples, ChunkType.SAMPLES, ("node", "code", "pc_offset", "reason"))
    rows["node"] = resolve(rows["node"], len(profile.tree))
    profile, chains = _with_code(profile, _sampled_functions(profile.tree, rows, tables), code)
    if not len(rows["node"]):
        return profile
    grown, node = _with_instructions(profile.tree, rows, chains)
    limits.check_metrics(len(np.unique(rows["reason"])), len(grown))
    metrics = {name: padded(metric, len(grown)) for name, metric in profile.metrics.items()}
    metric_of = _counted_metrics(rows, tables)
    metrics |= {
        name: _summed(name, rows["count"], rows["reason"] == text, node, len(grown)) for text, name in metric_of.items()
    }
    is_sample = ~np.isin(rows["reason"], list(metric_of))
    if not is_sample.any():
        return replace(profile, tree=grown, metrics=metrics)
    sampled = {name: column[is_sample] for name, column in rows.items()}
    metrics |= {metric.name: metric for metric in _metrics(sampled, tables, node[is_sample], len(grown))}
    sampling = {**profile.run.sampling.values(), **_totals(metrics, sampled, profile.tree)}
    return replace(profile, tree=grown, metrics=metrics, meta={**profile.meta, "sampling": sampling})


def _counted_metrics(rows: Columns, tables: CaptureTables) -> dict[int, str]:
    """What was counted by instruction, by its string."""
    names = {text: tables.strings.get(text, LOST) for text in np.unique(rows["reason"]).tolist()}
    return {text: name for text, name in names.items() if is_counted_by_instruction(name)}


def _summed(
    name: str, counts: NDArray[Any], chosen: NDArray[np.bool_], node: NDArray[np.int64], n_nodes: int
) -> Metric:
    own = np.zeros(n_nodes, np.int64)
    np.add.at(own, node[chosen], counts[chosen].astype(np.int64))
    return Metric(name, "1", MetricKind.INCLUSIVE, own)


def _with_code(
    profile: Profile, functions: Mapping[tuple[int, int], SampledFunction], code: CodeWish | None
) -> tuple[Profile, _Chains]:
    if code is None:
        return profile, {}
    from bragg.code import reading

    profile, chains = reading.read_code(code, profile, list(functions.values()))
    return profile, dict(zip(functions, chains, strict=True))


def _sampled_functions(tree: CallTree, rows: Columns, tables: CaptureTables) -> dict[tuple[int, int], SampledFunction]:
    """What was sampled, by frame of the kernel and number of the function, that with most samples first."""
    samples: dict[tuple[int, int], int] = {}
    for frame, code, count in zip(
        tree.frame[rows["node"]].tolist(), rows["code"].tolist(), rows["count"].tolist(), strict=True
    ):
        samples[frame, code] = samples.get((frame, code), 0) + count
    symbols = [tables.strings.get(text, LOST) for text in tables.codes.column("function").tolist()]
    checksums = tables.codes.column("cubin").astype(np.uint64).tolist()
    return {
        (frame, code): SampledFunction(
            tree.frames.name[frame], symbols[code], checksums[code], tables.cubins.get(checksums[code], b"")
        )
        for frame, code in sorted(samples, key=lambda place: -samples[place])
        if code < len(symbols)
    }


def _with_instructions(tree: CallTree, rows: Columns, chains: _Chains) -> tuple[CallTree, NDArray[np.int64]]:
    """The tree with a node for each instruction, and the node of each row: int64 [n_rows]."""
    places = np.stack([rows[name].astype(np.int64) for name in ("node", "code", "pc_offset")], axis=1)
    instructions, row_of = np.unique(places, axis=0, return_inverse=True)
    growth = Growth(len(tree), len(tree.frames))
    frames = tree.frame[instructions[:, 0]].tolist()
    nodes = []
    for (kernel, code, offset_bytes), frame in zip(instructions.tolist(), frames, strict=True):
        node = kernel
        for place in reversed(chains.get((frame, code), {}).get(offset_bytes, ())):
            node = growth.child(node, place.function, place.file, place.line)
        nodes.append(growth.child(node, f"+{offset_bytes:#x}"))
    return growth.applied_to(tree), np.array(nodes, np.int64)[row_of.reshape(-1)]


def _metrics(rows: Columns, tables: CaptureTables, node: NDArray[np.int64], n_nodes: int) -> list[Metric]:
    reason_of = {text: _reason(tables.strings.get(text, LOST)) for text in np.unique(rows["reason"]).tolist()}
    all_rows = np.ones(len(node), np.bool_)
    stalls = [text for text, reason in reason_of.items() if reason.group.is_stall]
    found = [
        _summed(_SAMPLES, rows["count"], all_rows, node, n_nodes),
        _summed(_STALLED, rows["count"], np.isin(rows["reason"], stalls), node, n_nodes),
    ]
    shared = rows["count"] - rows["exact"]
    if shared.any():
        found.append(_summed(_APPORTIONED, shared, all_rows, node, n_nodes))
    by_name: dict[str, list[int]] = {}
    for text, reason in reason_of.items():
        by_name.setdefault(reason.metric, []).append(text)
    return found + [
        _summed(name, rows["count"], np.isin(rows["reason"], texts), node, n_nodes)
        for name, texts in sorted(by_name.items())
    ]


def _reason(vendor_name: str) -> StallReason:
    try:
        return parse_vendor_name(vendor_name)[0]
    except ValueError:  # a device that names them otherwise: the name is all that is known
        return parse_vendor_name(VENDOR_PREFIX + vendor_name)[0]


def _totals(metrics: dict[str, Metric], rows: Columns, tree: CallTree) -> dict[str, int]:
    """Totals of the whole recording."""
    frames = tree.frames
    nobodys = np.array([name == WITHOUT_LAUNCH for name in frames.name])[tree.frame]
    is_nobodys = nobodys[np.maximum(tree.parent[rows["node"]], 0)]
    return {
        "samples": int(metrics[_SAMPLES].own.sum()),
        "exact": int(rows["exact"].sum()),
        "without_launch": int(rows["count"][is_nobodys].sum()),
    }
