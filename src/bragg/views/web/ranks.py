"""The ranks of a job compared, as the page reads it: the same as `bragg ranks`, with more of the heat map."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.analyze.ranks.answer import RanksAnswer
from bragg.analyze.ranks.findings import findings_of
from bragg.analyze.ranks.step_lanes import StepLanes
from bragg.views.job.heat_map import HeatMap, heat_map
from bragg.views.text.ranks_text import idea_lines, ranks_sentence, transfer_lines
from bragg.views.text.style import printable

_ROWS, _COLUMNS = 64, 120


def ranks_of(answer: RanksAnswer, shown: int | None) -> dict[str, Any]:
    """JSON values.

    Args:
        answer: The comparison.
        shown: Number of the rank whose profile the page shows; None: of no rank.
    """
    found = findings_of(answer)
    drawn = heat_map(answer.lateness, _ROWS, _COLUMNS)
    return {
        "sentence": printable(ranks_sentence(answer, found)),
        "shown": shown,
        "unit": "step" if answer.lateness is None or answer.lateness.is_unit_step else "round",
        "findings": [{"text": printable(each.message), "hint": each.hint} for each in found],
        "transfers": list(transfer_lines(answer.transfers)),
        "ideas": [printable(line) for line in idea_lines(answer)],
        "notes": [printable(note) for note in answer.notes],
        "edges": [] if drawn is None else (drawn.edges + 1).tolist(),
        "most_ns": 0.0 if drawn is None else drawn.most_ns,
        "rest": None if drawn is None else drawn.rest,
        "rows": [] if drawn is None else [_row(answer, drawn, row) for row in range(len(drawn.rows))],
        "lanes": [_lanes(answer, lanes) for lanes in answer.lanes],
    }


def _lanes(answer: RanksAnswer, lanes: StepLanes) -> dict[str, Any]:
    def number(index: int | None) -> int | None:
        return None if index is None else answer.ranks[index].rank

    return {
        "step": lanes.step + 1,
        "length_ns": lanes.length_ns,
        "left_out": lanes.n_left_out,
        "rows": [
            {
                "rank": number(index),
                "bars": [
                    {
                        "operation": printable(bar.operation),
                        "times_ns": [round(each) for each in (bar.begin_ns, bar.arrived_ns, bar.end_ns)],
                        "last": number(bar.last),
                    }
                    for bar in bars
                ],
            }
            for index, bars in zip(lanes.ranks.tolist(), lanes.bars, strict=True)
        ],
    }


def _row(answer: RanksAnswer, drawn: HeatMap, row: int) -> dict[str, Any]:
    index = int(drawn.rows[row])
    rank, path = answer.ranks[index], answer.path
    return {
        "rank": rank.rank,
        "host": printable(rank.host),
        "cost_ns": np.round(drawn.cost_ns[row]).tolist(),
        "share": float(drawn.shares[row]),
        "path": None if path is None or not path.wall_ns else float(path.work_ns[index]) / path.wall_ns,
        "slack_ns": None if path is None or np.isnan(path.slack_ns[index]) else float(path.slack_ns[index]),
    }
