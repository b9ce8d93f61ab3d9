"""A profile as bytes for the page's script (`web/src/data/decode.ts`).

    gzip of   u32 size of the header | header: JSON | columns

The header is what the script calls `ProfileData`, with an entry of `column_codes` in the place of each column.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bragg.analyze.kernel_facts import KernelFacts
from bragg.analyze.pauses import pauses_of_devices
from bragg.code.source_map import code_of_kernels, source_name
from bragg.model import FrameTable, Profile
from bragg.model.ids import FrameId
from bragg.model.table import Int64Array
from bragg.views.text.folding import fold_marks
from bragg.views.text.folding_rules import library_of
from bragg.views.text.labels import Labels
from bragg.views.text.run_facts import RunFacts
from bragg.views.text.style import printable
from bragg.views.web.column_codes import ColumnWriter
from bragg.views.web.hot_tables import main_metric
from bragg.views.web.launch_times import family_of, percentiles

# The default: 9 would take four times as long for 2 % less.
_GZIP_LEVEL = 6
# Tabulator, and the blanks of Latin and Chinese texts.
_BLANKS = "\t\u00a0\u3000"


@dataclass(frozen=True)
class Summary:
    """The answer in words.

    Attributes:
        sentences: Where the time went and why.
        facts: Of the run and its machine: name and value.
        lacks: What must be known before the numbers are trusted, and what was not recorded.
        numbers: A few that stand large above: value, name, about.
        wall: The parts of the wall time, as `first_look.py` writes them; None: not known.
        tables: What took most, as `hot_tables.py` writes it.
    """

    sentences: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    lacks: Sequence[str] = ()
    numbers: Sequence[Mapping[str, str]] = ()
    wall: Mapping[str, Any] | None = None
    tables: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Analyses:
    """What analyses say of a profile.

    Attributes:
        title: What the reader calls the profile.
        summary: See `Summary`.
        kernels: The table of kernels.
        code: Texts of kernels, as the view of code reads them: JSON values.
        roofline: The roofline in the same form; None: there is none.
        difference: A comparison in the same form; None: nothing is compared.
        findings: Why the program was slow, as `findings.py` writes it; None: nobody asked.
        steady: The same tree with the metrics of the steady state, without a GPU of what is no import; None: not known.
        ranks: The ranks of its job compared, as `ranks.py` writes it; None: it is no rank, or nobody asked.
        opens: The metric that flame graphs open with, in the steady state if that is known; empty: the usual one.
    """

    title: str = ""
    summary: Summary = field(default_factory=Summary)
    kernels: Sequence[KernelFacts] = ()
    code: Sequence[Mapping[str, Any]] = ()
    roofline: Mapping[str, Any] | None = None
    difference: Mapping[str, Any] | None = None
    findings: Mapping[str, Any] | None = None
    steady: Profile | None = None
    ranks: Mapping[str, Any] | None = None
    opens: str = ""


NO_ANALYSES = Analyses()


def pack(profile: Profile, *, analyses: Analyses = NO_ANALYSES) -> bytes:
    """Everything that the page shows of a profile."""
    columns = ColumnWriter()
    frames = _frames(profile.tree.frames, columns)
    header = {
        "version": 4,
        "title": analyses.title,
        "run": _run(profile),
        "meta": profile.meta,
        "summary": asdict(analyses.summary),
        "frames": frames,
        "tree": {
            "parent": columns.integers(profile.tree.parent, delta=True),
            "frame": columns.integers(profile.tree.frame),
            "fold": columns.integers(_fold(profile, frames["libraries"])),
        },
        "metrics": _metrics(profile, columns),
        "steady": None if analyses.steady is None else _metrics(analyses.steady, columns),
        "opens": {
            "isSteady": analyses.steady is not None and analyses.opens != "",
            "metric": analyses.opens or main_metric(profile),
        },
        **_kernels(profile, analyses.kernels),
        **_trace(profile, columns),
        "findings": analyses.findings,
        "sources": _source_files(profile),
        "code": list(analyses.code),
        "roofline": analyses.roofline,
        "difference": analyses.difference,
        "ranks": analyses.ranks,
    }
    text = json.dumps(_safe(header), separators=(",", ":")).encode()
    packed = b"".join([len(text).to_bytes(4, "little"), text, *columns.parts])
    return gzip.compress(packed, _GZIP_LEVEL, mtime=0)


def _run(profile: Profile) -> dict[str, Any]:
    facts, started_ns = RunFacts(profile.meta), profile.run.started_ns
    return {
        "command": facts.command,
        "duration": facts.duration_text(),
        "startedMs": None if started_ns is None else started_ns // 1_000_000,
    }


def _metrics(profile: Profile, columns: ColumnWriter) -> dict[str, Any]:
    return {
        name: {
            "unit": metric.unit,
            "kind": metric.kind.value,
            "own": columns.sparse(metric.own, metric.has_value & np.isfinite(metric.own)),
        }
        for name, metric in profile.metrics.items()
    }


def _fold(profile: Profile, libraries: list[str]) -> Int64Array:
    """What `fold_marks` says, with the rows of the page's libraries, which get the names of what is called in them."""
    marks = fold_marks(profile)
    begins = marks.mark >= 0
    number = {name: index for index, name in enumerate(libraries)}
    row = np.zeros(len(marks.libraries), np.int64)
    for used in np.unique(marks.mark[begins]).tolist():
        row[used] = number.setdefault(marks.libraries[used], len(number))
    libraries.extend(list(number)[len(libraries) :])
    found: Int64Array = np.where(begins, row[np.where(begins, marks.mark, 0)], marks.mark)
    return found


def _frames(frames: FrameTable, columns: ColumnWriter) -> dict[str, Any]:
    """Labels only where they differ from names, each file and library once."""
    labels = Labels(frames, with_device=False)
    shown = (labels.name(FrameId(row)) for row in range(len(frames)))
    files, file = _numbered(frames.file)
    libraries, library = _numbered([library_of(name) for name in files])
    # The empty name is that of the user's own code.
    own = libraries.index("") if "" in libraries else -1
    return {
        "kind": columns.raw(frames.kind, "u8"),
        "names": frames.name,
        "labels": {row: label for row, label in enumerate(shown) if label != frames.name[row]},
        "files": files,
        "file": columns.integers(file),
        "line": columns.integers(frames.line),
        "device": columns.integers(frames.device),
        "libraries": libraries,
        "library": columns.integers(np.where(library[file] == own, -1, library[file]) if len(file) else file),
    }


def _numbered(texts: Sequence[str]) -> tuple[list[str], Int64Array]:
    """The different texts, and which of them each one is."""
    number: dict[str, int] = {}
    rows = [number.setdefault(text, len(number)) for text in texts]
    return list(number), np.array(rows, np.int64)


def _kernels(profile: Profile, kernels: Sequence[KernelFacts]) -> dict[str, Any]:
    """The table of kernels, and percentiles by what its rows are called in each grouping."""
    names, family = profile.tree.frames.name, family_of(profile)
    return {
        "kernels": [{**asdict(kernel), "family": family(kernel)} for kernel in kernels],
        "percentiles": {
            "kernel": percentiles(profile, kernels, family),
            "specialization": percentiles(profile, kernels, lambda kernel: names[kernel.frame]),
        },
    }


def timeline_zero_ns(profile: Profile) -> int:
    """Where the timeline counts from: the start of the run, as its parts do; the first slice where it is not known."""
    if not len(profile.slices):
        return 0
    first_ns, began_ns = int(profile.slices.start_ns.min()), profile.run.started_ns
    is_known = began_ns is not None and 0 <= first_ns - began_ns <= (profile.run.duration_ns or 0)
    return began_ns if is_known and began_ns is not None else first_ns


def _trace(profile: Profile, columns: ColumnWriter) -> dict[str, Any]:
    tracks, slices, flows = profile.tracks, profile.slices, profile.flows
    first_ns = timeline_zero_ns(profile)
    return {
        "tracks": {
            "kind": columns.raw(tracks.kind, "u8"),
            "label": [tracks.label(row) for row in range(len(tracks))],
            "process": columns.integers(tracks.unique_process),
            "device": columns.integers(tracks.device),
        },
        "slices": {
            "start": columns.integers(slices.start_ns - first_ns, delta=True),
            "duration": columns.integers(slices.duration_ns),
            "node": columns.integers(slices.node),
            "track": columns.integers(slices.track, delta=True),
            "correlation": columns.integers(_small_ids(slices.correlation), delta=True),
        },
        "flows": {
            "source": columns.integers(flows.source, delta=True),
            "target": columns.integers(flows.target, delta=True),
        },
        "pauses": _pauses(profile, columns, first_ns),
    }


def _pauses(profile: Profile, columns: ColumnWriter, first_ns: int) -> dict[str, Any]:
    """When GPUs waited: each pause is from the end of one slice to the start of another; devices one after another.

    The other slice mostly stands a row behind, so the distance of the two takes a twentieth of what durations do.
    """
    devices = list(pauses_of_devices(profile))
    nothing = np.zeros(0, np.int64)
    return {
        "devices": [
            {
                "process": each.owner,
                "device": each.device,
                "begins": each.begins_ns - first_ns,
                "span": each.span_ns,
                "count": len(each.start_ns),
            }
            for each in devices
        ],
        "next": columns.integers(np.concatenate([nothing, *(each.next_work for each in devices)]), delta=True),
        "back": columns.integers(np.concatenate([nothing, *(each.next_work - each.last_work for each in devices)])),
        "launch": columns.integers(np.concatenate([nothing, *(each.launch for each in devices)]), delta=True),
    }


def _small_ids(correlation: Int64Array) -> Int64Array:
    """The ids, numbered anew where they do not fit into 32 bits; 0 stays 0."""
    if not len(correlation) or int(np.abs(correlation).max()) < 2**31:
        return correlation
    numbered = np.unique(np.append(correlation, 0), return_inverse=True)[1].reshape(-1)
    small: Int64Array = numbered[:-1] - numbered[-1]
    return small


def _source_files(profile: Profile) -> dict[str, str]:
    """The texts of source files; those of kernels are in `Analyses.code`."""
    of_kernels = {
        source_name(key, stage) for key, code in code_of_kernels(profile.sources).items() for stage in code.texts
    }
    return {name: text for name, text in profile.sources.items() if name not in of_kernels}


def _safe(value: Any) -> Any:
    """JSON values: null for NaN and infinities, which JSON has no words for, and no text that acts on the page."""
    if isinstance(value, str):
        return _safe_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_safe_text(str(key)): _safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(item) for item in value]
    return value


def _safe_text(text: str) -> str:
    """A text whose letters stand in their order; sources keep their lines and blanks, whichever they are."""
    return text if text.isprintable() else "\n".join(printable(line, _BLANKS) for line in text.split("\n"))
