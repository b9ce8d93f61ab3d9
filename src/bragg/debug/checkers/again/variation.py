"""Results that change with what must not matter: configuration, sizes of blocks, number of programs or warps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bragg.debug.checkers.again.replay import Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.host.launch import Call, Launch, prepare
from bragg.debug.state import Listeners
from bragg.errors import UsageError
from bragg.model import Severity

_MOST_CONFIGURATIONS = 8
_FEWEST_LANES = 16
_WARPS = (1, 2, 8)
_HINT = "Look for a size that is taken for granted, a tail that is left out, or programs that overlap"
_PADDING_HINT = (
    "Look at what lanes hold that masks leave out: those of a reduction must count for nothing, as in"
    " tl.where(mask, value, 0)"
)


@dataclass(frozen=True)
class _Variant:
    """Another way to launch a kernel.

    Attributes:
        what: That is changed.
        change: Its value, and the one instead of it.
        call: The launch.
        configuration: The one that its autotuner is to choose; None: its own choice.
        hint: What to look for where results differ.
    """

    what: str
    change: str
    call: Call
    configuration: Any = None
    hint: str = _HINT

    def launch(self) -> Launch:
        """The launch, ready to be executed; hooks of its configuration have run."""
        call, tuner = self.call, self.call.tuner
        if self.configuration is None:
            return prepare(call.kernel, call.grid, call.arguments, call.named)
        configurations, tuner.configs = tuner.configs, [self.configuration]
        try:
            return prepare(call.kernel, call.grid, call.arguments, call.named)
        finally:
            tuner.configs = configurations


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    if launch.only is not None or not launch.is_in_host_memory:
        return Listeners()
    record.report.verdicts.vary(launch.kernel)
    replay = Replay(launch)

    def compare() -> None:
        told: set[str] = set()
        variants = list(_variants(launch))
        if fixed := sorted(_sizes(launch) - {variant.what for variant in variants}):
            asked = f"{'them' if fixed[1:] else 'it'}, as lambda meta: ... meta['{fixed[0]}'] does"
            text = f"not varied: {', '.join(fixed)} (the grid does not ask for {asked})"
            record.report.verdicts.note(launch.kernel, text)
        for variant in variants:
            if variant.what not in told and _differs(record, replay, variant):
                told.add(variant.what)

    return Listeners(access=[replay.see], end=[compare])


def _differs(record: LaunchFindings, replay: Replay, variant: _Variant) -> bool:
    """The variant gives other results, which is reported; one that the kernel is not made for gives none."""
    try:
        differences = replay.differences(lambda listeners: variant.launch().run_again(listeners))
    except (KernelFault, Unsupported, UsageError):
        return False
    if variant.configuration is not None:
        record.launch.configurations += 1
    record.report.verdicts.vary(record.launch.kernel, variant.what.removeprefix("the "))
    for difference in differences:
        writer = replay.writer(difference)
        if writer is not None:
            record.at_source(
                writer.file,
                writer.line,
                f"elements of {difference.buffer.name} change with {variant.what}, which should not matter",
                variant.hint,
                Severity.WARNING,
                difference.buffer,
                f"{difference.element} is {difference.before}, and {difference.after} with {variant.change}",
            )
    return bool(differences)


def _variants(launch: Launch) -> Iterator[_Variant]:
    call, names = launch.call, launch.program.function.__code__.co_names
    if call.tuner is not None and len(call.tuner.configs) > 1:
        yield from _configurations(call)
    else:
        asked = _asked_by_grid(launch)
        yield from _block_sizes(launch, asked)
        yield from _padded_blocks(launch, asked)
    if "num_programs" in names and launch.grid[1:] == (1, 1):
        for count in sorted({max(launch.programs // 2, 1), launch.programs * 2 + 1} - {launch.programs}):
            change = f"{count} programs instead of {launch.programs}"
            yield _Variant("the number of programs", change, replace(call, grid=(count, 1, 1)))
    if "num_warps" in names or "num_warps" in launch.arguments:
        warps = int({**launch.arguments, **launch.options}.get("num_warps", 4))
        for count in set(_WARPS) - {warps}:
            named = {**call.named, "num_warps": count}
            yield _Variant("num_warps", f"num_warps={count} instead of {warps}", replace(call, named=named))


def _configurations(call: Call) -> Iterator[_Variant]:
    chosen = call.tuner.best_config
    for one in call.tuner.configs[:_MOST_CONFIGURATIONS]:
        if one is not chosen:
            yield _Variant("the configuration", _changed(one, chosen), call, one)


def _changed(one: Any, chosen: Any) -> str:
    """What a configuration of an autotuner has that is not as in the chosen one."""
    new, old = one.all_kwargs(), chosen.all_kwargs()
    names = [name for name in {**old, **new} if new.get(name) != old.get(name)]
    values = [", ".join(f"{name}={known.get(name)}" for name in names) for known in (new, old)]
    return " instead of ".join(values) if names else f"{one} instead of {chosen}"


def _asked_by_grid(launch: Launch) -> set[str]:
    """Arguments that decide the size of the grid."""
    asked = _Asked(launch.arguments)
    if callable(launch.call.grid):
        launch.call.grid(asked)
    return asked.names


def _sizes(launch: Launch) -> set[str]:
    """Constants that are sizes of blocks, which no autotuner chooses."""
    names = _ends_of_ranges(launch) & launch.constants & launch.call.named.keys()
    return set() if launch.call.tuner is not None else {name for name in names if _is_block(launch.arguments[name])}


def _block_sizes(launch: Launch, asked: set[str]) -> Iterator[_Variant]:
    """Constants that decide the size of the grid, at half and twice their size."""
    for name in sorted(asked & launch.constants & launch.call.named.keys()):
        if _is_block(launch.arguments[name]):
            for other in (launch.arguments[name] // 2, launch.arguments[name] * 2):
                yield _resized(launch, name, other, _HINT)


def _padded_blocks(launch: Launch, asked: set[str]) -> Iterator[_Variant]:
    """Constants that are the next power of two above the extent of an axis, at twice their size."""
    known = {number for one in launch.buffers for number in (*one.shape, *one.strides)}
    padded = {1 << (extent - 1).bit_length() for one in launch.buffers for extent in one.shape if extent} - known
    for name in sorted(_ends_of_ranges(launch) & launch.constants & launch.call.named.keys() - asked):
        if _is_block(launch.arguments[name]) and launch.arguments[name] in padded:
            yield _resized(launch, name, launch.arguments[name] * 2, _PADDING_HINT)


def _ends_of_ranges(launch: Launch) -> set[str]:
    calls = (node for node in launch.program.text.nodes if isinstance(node, ast.Call) and len(node.args) == 2)
    ends = (call.args[1] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "arange")
    return {end.id for end in ends if isinstance(end, ast.Name)}


def _is_block(size: Any) -> bool:
    return type(size) is int and size >= _FEWEST_LANES and not size & (size - 1)


def _resized(launch: Launch, name: str, size: int, hint: str) -> _Variant:
    call = replace(launch.call, named={**launch.call.named, name: size})
    return _Variant(name, f"{name}={size} instead of {launch.arguments[name]}", call, hint=hint)


class _Asked(dict[str, Any]):
    """Arguments that remember which of them were looked at."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


VARIATION = Checker("launch-dependence", "results that change with block sizes or program counts", False, _watch)
