"""An analysis as Markdown, and as JSON that is brief."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from shlex import quote
from textwrap import shorten
from typing import Any

from bragg.analyze.report import Answered
from bragg.model import Finding
from bragg.views.text.bounds_text import bounds_sentence
from bragg.views.text.finding_text import gain_text, place_text
from bragg.views.text.style import printable

_BRIEF_BYTES = 2000
_BRIEF_MESSAGE = 160


def markdown_lines(answer: Answered, least_gain: float) -> Iterator[str]:
    """The answer as Markdown: a sentence and a table."""
    yield f"**{printable(answer.name)}** {bounds_sentence(answer.bounds)}".strip()
    found = answer.worth(least_gain)
    if found:
        yield ""
        yield "| gain | sure | finding | where | change |"
        yield "|---|---|---|---|---|"
    for finding in found:
        sure = finding.confidence.name.lower()
        place = f"{place_text(finding)} {_markdown_code(answer.code_of(finding))}".rstrip()
        cells = (gain_text(finding), sure, f"{finding.rule}: {finding.message}", place, finding.hint)
        yield f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _markdown_code(code: str) -> str:
    fence = "`` {} ``" if "`" in code else "`{}`"
    return fence.format(code) if code else ""


def brief_json(answers: Sequence[Answered], least_gain: float) -> dict[str, Any]:
    """The answer in at most 2 kB: as many findings as fit, then as many profiles, and how many do not."""
    most = max((len(one.worth(least_gain)) for one in answers), default=0)
    shown = [*((len(answers), n) for n in range(most, -1, -1)), *((n, 0) for n in range(len(answers) - 1, -1, -1))]
    for n_profiles, n_findings in shown:
        values: dict[str, Any] = {"profiles": [_brief(one, least_gain, n_findings) for one in answers[:n_profiles]]}
        if n_profiles < len(answers):
            values["more"] = len(answers) - n_profiles
        if len(json.dumps(values).encode()) <= _BRIEF_BYTES:
            break
    return values


def _brief(answer: Answered, least_gain: float, n: int) -> dict[str, Any]:
    found = answer.worth(least_gain)
    return {
        "file": answer.name[-_BRIEF_MESSAGE:],
        "bound": answer.bounds.cause,
        "gpu_busy": None if answer.bounds.busy is None else round(answer.bounds.busy, 3),
        "step_ms": round(answer.bounds.of_ns / answer.bounds.n_steps / 1e6, 3) if answer.bounds.n_steps else None,
        "findings": [
            {
                "rule": finding.rule,
                "gain": None if finding.gain is None else round(finding.gain.share, 4),
                "confidence": finding.confidence.name.lower(),
                "at": _whole_place(finding) or finding.kernel[:_BRIEF_MESSAGE],
                "message": shorten(printable(finding.message), _BRIEF_MESSAGE, placeholder=" …"),
                "change": shorten(printable(finding.hint), _BRIEF_MESSAGE, placeholder=" …"),
            }
            for finding in found[:n]
        ],
        "more": len(found) - min(n, len(found)),
        "next": f"bragg analyze {quote(answer.name) if 0 < len(answer.name) <= _BRIEF_MESSAGE else 'FILE'} --json",
    }


def _whole_place(finding: Finding) -> str:
    """The same as programs open it: the whole path, unless it is very long."""
    is_long = len(finding.file) > _BRIEF_MESSAGE
    return place_text(finding) if is_long or not finding.file else f"{printable(finding.file)}:{finding.line}"
