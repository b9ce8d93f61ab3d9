"""`bragg doctor`: what can be recorded here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from bragg.cli.checks import gpu, nccl, software, system
from bragg.cli.checks.check import Check, State, Surroundings
from bragg.cli.checks.counter_list import counter_list_lines
from bragg.cli.console import stream_style, write_json, write_lines
from bragg.cli.probe import COUNTERS, ProbeProcess
from bragg.cli.welcome import MEASURED_ON_HOST
from bragg.errors import BackendUnavailable
from bragg.views.text.style import Style, printable

_CHECKS = (*software.CHECKS, *gpu.CHECKS, *nccl.CHECKS, *system.CHECKS)
_COUNTERS_S = 120.0  # each of 1,300 metrics is tried: 10 s on a quiet machine
_EPILOG = """\b
Examples:
  bragg doctor
  bragg doctor --all
  bragg doctor --counters
"""


@click.command(epilog=_EPILOG)
@click.option("--all", "show_all", is_flag=True, help="Show every check, not only those that limit something.")
@click.option("--counters", is_flag=True, help="List the hardware counters that the first GPU has in one pass.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(show_all: bool, counters: bool, as_json: bool) -> int:
    """Check what can be recorded on this machine.

    The first lines say whether all is well and what to do. Each check below them says what it found, what that blocks,
    and how to fix it. The GPU is tried in a separate process. Exit code 4 if nothing can be recorded.
    """
    if counters:
        _list_counters(as_json)
        return 0
    surroundings = Surroundings(environ=os.environ, probe=ProbeProcess().result())
    checks = [check(surroundings) for check in _CHECKS]
    if as_json:
        write_json("doctor", {"checks": [{**asdict(check), "state": check.state.value} for check in checks]})
    else:
        write_lines(_lines(checks, stream_style(sys.stdout), show_all=show_all))
    blocked = any(check.state is State.BLOCKED for check in checks)
    return BackendUnavailable.exit_code if blocked else 0


def _list_counters(as_json: bool) -> None:
    """Print what counters there are.

    Raises:
        BackendUnavailable: There are none, and why.
    """
    said = ProbeProcess(COUNTERS).result(_COUNTERS_S)
    told = said.get("counters", {})
    if reason := told.get("reason") or ("" if told else said.get("error", "no answer")):
        raise BackendUnavailable(f"no hardware counters: {printable(reason)}", hint="Run: bragg doctor")
    if as_json:
        write_json("counters", told)
    else:
        write_lines(counter_list_lines(told))


def _lines(checks: Sequence[Check], style: Style, *, show_all: bool) -> list[str]:
    shown = checks if show_all else [check for check in checks if check.limits]
    lines = [*_conclusion(checks), *([""] if shown else []), *_table(shown, style)]
    if hidden := len(checks) - len(shown):
        lines += ["", style.dim(f"{hidden} other checks limit nothing: bragg doctor --all")]
    return lines


def _table(checks: Sequence[Check], style: Style) -> list[str]:
    paint = {State.OK: style.good, State.NOTE: style.dim, State.LIMITED: style.warning, State.BLOCKED: style.bad}
    name_width = max((len(check.name) for check in checks), default=0)
    state_width = max(len(state.value) for state in State)
    lines = []
    for check in checks:
        state = paint[check.state](check.state.value.ljust(state_width))
        lines.append(f"{state}  {check.name:<{name_width}}  {check.found}")
        indent = " " * (state_width + name_width + 4)
        lines += [f"{indent}{label}: {text}" for label, text in (("blocks", check.blocks), ("fix", check.fix)) if text]
    return lines


def _conclusion(checks: Sequence[Check]) -> list[str]:
    """Whether all is well, what to fix, and the next command."""
    defects = [check for check in checks if check.state in (State.LIMITED, State.BLOCKED)]
    to_do = [f"To fix: {check.name} {check.found}. {check.fix}" for check in defects[:1]]
    if any(check.state is State.BLOCKED for check in checks):
        return ["Nothing can be recorded here. Profiles can be viewed: bragg view FILE", *to_do]
    why_not = next((f"{check.name}: {check.found}" for check in checks if check.blocks == gpu.GPU_TIMES), None)
    gpu_times, but_not = ("GPU times, ", "") if why_not is None else ("", f"; GPU times cannot ({why_not})")
    recorded = f"Can be recorded here: {gpu_times}{MEASURED_ON_HOST}{but_not}."
    return [recorded, *(to_do or ["Nothing needs to be fixed."]), "Next: bragg demo, or bragg run your_script.py"]
