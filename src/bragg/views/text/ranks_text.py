"""What comparing the ranks of a job found, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bragg.analyze.ranks.answer import RanksAnswer
from bragg.analyze.ranks.bandwidth import Transfers
from bragg.analyze.ranks.causes import LateCause
from bragg.analyze.ranks.clocks import Alignment
from bragg.analyze.ranks.critical_path import CriticalPath, WhatIf
from bragg.analyze.ranks.findings import findings_of
from bragg.analyze.ranks.lateness import Lateness
from bragg.analyze.ranks.stragglers import Straggler
from bragg.analyze.report import finding_json
from bragg.model import Finding
from bragg.model.table import FloatArray
from bragg.views.job.heat_map import heat_map
from bragg.views.text.style import Style, printable
from bragg.views.text.units import bytes_text, count_text, share_text, time_text

_N_LINES = 25
_N_FINDINGS = 3
_N_ROWS = 8
_N_COLUMNS = 60
_N_NOTES = 4
_N_ON_PATH, _N_IDEAS = 3, 2
_N_TRANSFERS = 2
_SHADES, _PLAIN_SHADES = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
_NAME = 9
_MAX_PATH = 90


def ranks_lines(answer: RanksAnswer, style: Style) -> list[str]:
    """The answer for a terminal, in at most 25 lines."""
    found = findings_of(answer)
    lines = [style.bold(ranks_sentence(answer, found))]
    for finding in found[:_N_FINDINGS]:
        head = style.bad("slow") if finding is found[0] else style.warning("also")
        lines.append(f"  {head}  {_first_upper(printable(finding.message))}")
        if finding.hint:
            lines.append(f"        {style.dim(finding.hint)}")
    if len(found) > _N_FINDINGS:
        lines.append(style.dim(f"  and {len(found) - _N_FINDINGS} more: --json"))
    notes = [style.dim(f"note: {printable(note)}") for note in answer.notes[:_N_NOTES]]
    if len(answer.notes) > len(notes):
        notes.append(style.dim(f"and {count_text(len(answer.notes) - len(notes), 'more note')}: --json"))
    # What there is no room for is in --json.
    for part in (_heat_map(answer, style), _path(answer, style), _imbalances(answer, style), _transfers(answer, style)):
        more = list(part)
        lines += more if len(lines) + len(more) + len(notes) <= _N_LINES else []
    return lines + notes


def ranks_sentence(answer: RanksAnswer, found: Sequence[Finding]) -> str:
    """Who holds up the others, and what communication costs."""
    ranks = count_text(len(answer.ranks), "rank")
    if answer.lateness is None:
        more = " Collectives of CPUs need bragg run --data trace." if answer.ranks[0].is_on_cpus else ""
        return f"{ranks} without a timed collective in common: who waited for whom is not known.{more}"
    exposed = ""
    if answer.exposed is not None:
        exposed = f" Communication that nothing hides takes {share_text(answer.exposed.share)} of a step"
        exposed += f", {share_text(answer.exposed.waiting_share)} waiting for the last rank."
    if not answer.is_whole:
        how = "by their sums: the steps need bragg run --data trace"
    else:
        steps = count_text(answer.lateness.n_steps + 1, "step" if answer.lateness.is_unit_step else "round")
        how = f"over {steps} and {count_text(answer.n_collectives, 'collective')}"
    if not found:
        return f"No rank holds up the others: {ranks} {how}.{exposed}"
    return f"{_culprit(found[0])}: {ranks} {how}.{exposed}"


def _culprit(worst: Finding) -> str:
    numbers = [int(each.value) for each in worst.evidence if each.name == "rank"]
    who = f"Rank {numbers[0]}" if numbers else "A slow link"
    if worst.gain is None or worst.gain.is_once:
        return f"{who} costs the job {time_text(worst.gain.wall_ns if worst.gain else 0.0)} at the start"
    return f"{who} costs the job {share_text(worst.gain.share)} of its time"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _heat_map(answer: RanksAnswer, style: Style) -> Iterator[str]:
    """What ranks cost by step, the worst ones; all steps of a column together."""
    drawn = heat_map(answer.lateness, _N_ROWS, min(_N_COLUMNS, max((style.width or 100) - 30, 10)))
    if drawn is None or answer.lateness is None:
        return
    width = drawn.cost_ns.shape[1]
    unit = "steps" if answer.lateness.is_unit_step else "rounds"
    name = "cost to the others"
    yield ""
    yield f"{'rank':>{_NAME}}  {style.dim(f'{unit} 1 to {answer.lateness.n_steps}'.ljust(width))}  {name}"
    for index, cost, share in zip(drawn.rows.tolist(), drawn.cost_ns, drawn.shares.tolist(), strict=True):
        number = str(answer.ranks[index].rank)
        yield f"{number:>{_NAME}}  {_shaded(cost, drawn.most_ns, style)}  {share_text(share)}"
    if drawn.rest is not None:
        yield style.dim(f"{'others':>{_NAME}}  {''.ljust(width)}  at most {share_text(drawn.rest)} each")


def _shaded(values: FloatArray, most: float, style: Style) -> str:
    shades = _SHADES if style.unicode else _PLAIN_SHADES
    levels = np.ceil(values / most * (len(shades) - 1)).astype(int) if most > 0 else np.zeros(len(values), int)
    return "".join(shades[level] for level in levels.tolist())


def _path(answer: RanksAnswer, style: Style) -> Iterator[str]:
    path = answer.path
    if path is None or not path.wall_ns:
        return
    yield ""
    yield style.dim("critical path: work of the rank that came last to each collective, and transfers")
    yield from (f"  {line}" for line in idea_lines(answer))


def idea_lines(answer: RanksAnswer) -> Iterator[str]:
    """Whose work the critical path is, and what would shorten it; none: it is not known."""
    path = answer.path
    if path is None or not path.wall_ns:
        return
    shares = path.work_ns / path.wall_ns
    most = [index for index in np.argsort(-shares, kind="stable").tolist()[:_N_ON_PATH] if shares[index] > 0]
    parts = [f"rank {answer.ranks[index].rank} {share_text(float(shares[index]))}" for index in most]
    rest = 1.0 - float(shares[most].sum()) - path.transfer_ns / path.wall_ns
    others = [f"other ranks {share_text(rest)}"] if len(shares) > len(most) and rest > 0 else []
    yield f"{', '.join([*parts, *others])}, transfers {share_text(path.transfer_ns / path.wall_ns)}"
    for each in path.what_if[:_N_IDEAS]:
        yield f"{_what_if(answer, each)}: at most {share_text(each.saved_ns / path.wall_ns)} less"


def _what_if(answer: RanksAnswer, idea: WhatIf) -> str:
    if idea.rank is None:
        return f"if no {printable(idea.operation)} took longer than the median one of its size"
    return f"if rank {answer.ranks[idea.rank].rank} came with the next to last"


def _imbalances(answer: RanksAnswer, style: Style) -> Iterator[str]:
    if not answer.imbalances:
        return
    yield ""
    yield style.dim("GPU time that is not the same on all ranks (largest over mean, rank of the largest)")
    for each in answer.imbalances:
        path = printable(each.path)
        path = path if len(path) <= _MAX_PATH else f"…{path[-_MAX_PATH:]}"
        yield f"{each.ratio:>+7.0%}  rank {answer.ranks[each.rank].rank}  {time_text(each.most_ns)}  {path}"


def _transfers(answer: RanksAnswer, style: Style) -> Iterator[str]:
    if not answer.transfers:
        return
    yield ""
    yield style.dim("transfers, without waiting (input of a rank, bus bandwidth)")
    yield from transfer_lines(answer.transfers[:_N_TRANSFERS])


def transfer_lines(transfers: Sequence[Transfers]) -> Iterator[str]:
    """`210 GB/s  78 x all-reduce of 2 ranks, 50.4 MB, 18.7 ms in all, 47 % of NVLink, RING SIMPLE, 24 channels`."""
    for each in transfers:
        many = f"{each.operation} of {each.n_ranks} ranks, {bytes_text(each.size_bytes)}"
        took = f"{time_text(each.total_ns)} in all"
        link = f"{share_text(each.bus_bytes_per_s / each.link_bytes_per_s)} of NVLink" if each.link_bytes_per_s else ""
        told = ", ".join(filter(None, [many, took, link, printable(each.way)]))
        yield f"{each.bus_bytes_per_s / 1e9:>7.3g} GB/s  {each.count:,} x {told}"


def ranks_json(answer: RanksAnswer) -> dict[str, Any]:
    """JSON values of the whole answer."""
    numbers = [rank.rank for rank in answer.ranks]
    link, exposed = answer.link, answer.exposed
    return {
        "ranks": numbers,
        "by": "collectives" if answer.is_whole else "sums",
        "n_collectives": answer.n_collectives,
        "findings": [finding_json(finding) for finding in findings_of(answer)],
        "stragglers": [_straggler_json(late, cause, numbers) for late, cause in answer.stragglers],
        "slow_link": link and {"ranks": [numbers[index] for index in link.ranks], "ratio": link.ratio},
        "steps": answer.lateness and _steps_json(answer.lateness, numbers),
        "exposed": exposed and {"share": exposed.share, "waiting_share": exposed.waiting_share},
        "critical_path": answer.path and _path_json(answer.path, numbers),
        "imbalances": [{**asdict(each), "rank": numbers[each.rank]} for each in answer.imbalances],
        "clocks": {
            str(number): clock and _clock_json(clock) for number, clock in zip(numbers, answer.clocks, strict=True)
        },
        "transfers": [asdict(each) for each in answer.transfers],
        "notes": answer.notes,
    }


def _straggler_json(late: Straggler, cause: LateCause, numbers: list[int]) -> dict[str, Any]:
    return {
        "rank": numbers[late.index],
        "when": late.when.value,
        "steps": (late.steps + 1).tolist(),
        "each_ns": late.each_ns,
        "cost_ns": late.cost_ns,
        "cause": cause.reason.value,
        "ratio": cause.ratio,
        "path": cause.path,
    }


def _steps_json(found: Lateness, numbers: list[int]) -> dict[str, Any]:
    # Most are 0: whole numbers take a fifth of the memory, of thousands of ranks 150 MB less.
    costs = zip(numbers, np.rint(found.cost_ns).astype(np.int64), strict=True)
    return {
        "unit": "step" if found.is_unit_step else "round",
        "step_ns": found.step_ns.tolist(),
        "cost_ns": {str(number): row.tolist() for number, row in costs},
        "startup_ns": {str(number): cost for number, cost in zip(numbers, found.startup_ns.tolist(), strict=True)},
    }


def _clock_json(clock: Alignment) -> dict[str, Any]:
    return {
        "offset_ns": clock.offset_ns,
        "drift_ppm": clock.drift * 1e6,
        "at_ns": clock.around_ns,
        "uncertainty_ns": clock.uncertainty_ns,
        "by": clock.basis.value,
    }


def _path_json(path: CriticalPath, numbers: list[int]) -> dict[str, Any]:
    return {
        "wall_ns": path.wall_ns,
        "work_ns": {str(number): work for number, work in zip(numbers, path.work_ns.tolist(), strict=True)},
        "transfer_ns": path.transfer_ns,
        "slack_ns": {
            str(number): None if np.isnan(slack) else slack
            for number, slack in zip(numbers, path.slack_ns.tolist(), strict=True)
        },
        "what_if": [
            {
                "rank": None if each.rank is None else numbers[each.rank],
                "operation": each.operation or None,
                "saved_ns": each.saved_ns,
            }
            for each in path.what_if
        ],
    }
