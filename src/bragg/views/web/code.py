"""Kernels and files of the program as the source view of the page reads them; the shape: `web/src/data/code.ts`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bragg.analyze.annotated_code import Samples, StagedCode
from bragg.analyze.program_lines import ProgramFile
from bragg.code.source_map import PlaceKey, Stage, place_keys
from bragg.code.source_place import CallChain
from bragg.code.stall_reasons import StallReason
from bragg.views.text.finding_text import short_path

_NOWHERE = -1


def code_of(kernels: Iterable[StagedCode]) -> list[dict[str, Any]]:
    """The kernels that the profile has any code of, in order: JSON values."""
    texts = (_Kernel(kernel).json() for kernel in kernels)
    return [text for text in texts if text["panes"]]


def program_code_of(program: ProgramFile) -> dict[str, Any]:
    """A file of the program with the times of its lines: JSON values."""
    names = list(program.totals_ns)
    times = [
        [[row, line.times_ns[name]] for row, name in enumerate(names) if name in line.times_ns]
        for line in program.lines
    ]
    return {
        "key": "",
        "name": program.file,
        "missing": "",
        "panes": [
            {
                "stage": "python",
                "lines": [line.text for line in program.lines],
                "numbers": [line.number for line in program.lines],
                "sections": [[0, short_path(program.file), program.file]],
                "place": [],
                "ptx": [],
                "samples": [[row, own[0][1], own] for row, own in enumerate(times) if own],
            }
        ],
        "places": [],
        "samples": 0,
        "reasons": [],
        "times": [[name, total_ns] for name, total_ns in program.totals_ns.items()],
    }


class _Kernel:
    """Numbers the places that lines come from: lines of one place, or of places with a key in common, are linked."""

    def __init__(self, kernel: StagedCode) -> None:
        self._kernel = kernel
        self._row_of_source = {place: row for row, place in enumerate(_source_rows(kernel))}
        self._places: dict[CallChain, int] = {}
        self._keys: dict[PlaceKey, int] = {}
        self._reasons: dict[StallReason, int] = {}

    def json(self) -> dict[str, Any]:
        panes = [self._source_pane(), *(self._stage_pane(stage) for stage in Stage)]
        kernel = self._kernel
        return {
            "key": kernel.code.key,
            "name": kernel.kernel,
            "missing": kernel.missing,
            "panes": [pane for pane in panes if pane["lines"]],
            "places": [self._place(chain) for chain in self._places],
            "samples": _plain(kernel.total.count),
            "reasons": [[reason.name, reason.group.value, reason.meaning] for reason in self._reasons],
            "times": None,
        }

    def _source_pane(self) -> dict[str, Any]:
        lines = [line for section in self._kernel.source for line in section.lines]
        starts, row = [], 0
        for section in self._kernel.source:
            starts.append([row, section.title, section.file])
            row += len(section.lines)
        return {
            "stage": "python",
            "lines": [line.text for line in lines],
            "numbers": [line.number for line in lines],
            "sections": starts,
            "place": [],
            "ptx": [],
            "samples": self._samples({row: line.samples for row, line in enumerate(lines)}),
        }

    def _stage_pane(self, stage: Stage) -> dict[str, Any]:
        code = self._kernel.code
        lines = code.lines(stage)
        is_sass = stage is Stage.SASS
        return {
            "stage": stage.value,
            "lines": lines,
            "numbers": [instruction.offset_bytes for instruction in code.instructions]
            if is_sass
            else list(range(1, len(lines) + 1)),
            "sections": [],
            "place": [self._place_row(chain) for chain in code.places(stage)],
            "ptx": [instruction.ptx_line for instruction in code.instructions] if is_sass else [],
            "samples": self._samples(self._kernel.samples.get(stage, {})),
        }

    def _place_row(self, chain: CallChain) -> int:
        return self._places.setdefault(chain, len(self._places)) if chain else _NOWHERE

    def _place(self, chain: CallChain) -> dict[str, list[int]]:
        source = (self._row_of_source.get((place.file, place.line)) for place in chain)
        return {
            "keys": [self._keys.setdefault(key, len(self._keys)) for key in place_keys(chain)],
            "source": [row for row in source if row is not None],
        }

    def _samples(self, samples: Mapping[int, Samples]) -> list[list[Any]]:
        """Row, count, and count by reason of each line that has any, and the line whose result most of it waits for."""
        return [
            [
                row,
                _plain(own.count),
                [
                    [self._reasons.setdefault(reason, len(self._reasons)), _plain(count)]
                    for reason, count in own.by_reason.items()
                ],
                *([own.main_producer[1]] if own.main_producer else []),
            ]
            for row, own in sorted(samples.items())
            if own.count
        ]


def _source_rows(kernel: StagedCode) -> Iterator[tuple[str, int]]:
    """File and number of each line of the source, in the order of its pane."""
    return ((section.file, line.number) for section in kernel.source for line in section.lines)


def _plain(count: float) -> float:
    """Counts are whole unless samples were shared out among call paths."""
    return int(count) if float(count).is_integer() else round(float(count), 3)
