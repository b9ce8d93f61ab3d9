"""Kernels whose result changes when autotuning runs them several times on the same tensors.

Tuning runs each configuration many times before the launch that counts. What it leaves in the tensors is taken away by
`reset_to_zero`, `restore_value` and hooks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from bragg.debug.checkers.again.replay import Difference, Replay
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.host.launch import Launch
from bragg.debug.memory.storage import Buffer
from bragg.debug.report import Report
from bragg.debug.state import Listeners
from bragg.model import Severity

# Kernels that were looked at, by the constants and tensor shapes that they were launched with.
_SEEN: WeakKeyDictionary[Report, set[Any]] = WeakKeyDictionary()


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    tuner = launch.call.tuner
    if tuner is None or len(tuner.configs) < 2 or launch.only is not None:
        return Listeners()
    seen = _SEEN.setdefault(record.report, set())
    key = launch.program.function, launch.block_sizes, tuple(buffer.shape for buffer in launch.buffers)
    if key in seen:
        return Listeners()
    seen.add(key)
    replay = Replay(launch)
    return Listeners(access=[replay.see], end=[lambda: _compare(record, replay)])


def _compare(record: LaunchFindings, replay: Replay) -> None:
    launch, hooks = record.launch, _Hooks(record.launch, replay)

    def tune_and_run(listeners: Listeners) -> None:
        hooks.before(is_tuning=True)
        launch.run_again(listeners)
        hooks.after()
        hooks.before(is_tuning=False)
        launch.run_again(listeners)

    try:
        differences = replay.differences(tune_and_run)
    except KernelFault as fault:
        _tell_fault(record, fault)
        return
    except Unsupported as problem:
        record.report.verdicts.note(launch.kernel, f"tuned-twice could not judge: {problem}")
        return
    for difference in differences:
        _tell(record, replay, difference)


class _Hooks:
    """What an autotuner does to the tensors around each run.

    Its own hooks are called where the tensors are in host memory; else what they are named for is done to the copies.
    """

    def __init__(self, launch: Launch, replay: Replay) -> None:
        self._tuner = launch.call.tuner
        self._replay = replay
        self._named = {buffer.name: buffer for buffer in launch.buffers}
        self._arguments = {**launch.arguments, **launch.options}
        config = self._tuner.best_config
        self._own = config.pre_hook if config is not None else None
        self._restored: list[Callable[[], None]] = []

    def before(self, *, is_tuning: bool) -> None:
        """Before a run, to measure or that counts."""
        if self._own is not None:
            self._own(self._arguments)
        if getattr(self._tuner, "user_defined_pre_hook", False):
            self._tuner.pre_hook(self._arguments, reset_only=not is_tuning)
            return
        for buffer in self._chosen(self._tuner.reset_to_zero):
            buffer.flat[...] = 0
        kept = [(buffer, buffer.flat.copy()) for buffer in self._chosen(self._tuner.restore_value)] if is_tuning else []
        self._restored = [lambda b=buffer, c=copy: b.flat.__setitem__(..., c) for buffer, copy in kept]  # type: ignore[misc]

    def after(self) -> None:
        """After a run to measure."""
        if getattr(self._tuner, "user_defined_post_hook", False):
            self._tuner.post_hook(self._arguments, exception=None)
            return
        for restore in self._restored:
            restore()

    def _chosen(self, names: Iterable[str]) -> list[Buffer]:
        return [self._named[name] for name in names if name in self._named]


def _tell(record: LaunchFindings, replay: Replay, difference: Difference) -> None:
    writer = replay.writer(difference)
    if writer is None:
        return
    name = difference.buffer.name
    record.at_source(
        writer.file,
        writer.line,
        f"tuning runs the kernel several times, and each run changes {name} further",
        f'Give @triton.autotune reset_to_zero=["{name}"], or restore_value=["{name}"] where its old values count',
        Severity.ERROR,
        difference.buffer,
        f"{difference.element} is {difference.before}, and {difference.after} after one run to tune",
    )


def _tell_fault(record: LaunchFindings, fault: KernelFault) -> None:
    if any((one.kernel, one.file, one.line) == (fault.kernel, fault.file, fault.line) for one in record.report):
        return  # The first run fails there, too.
    record.at_source(
        fault.file,
        fault.line,
        f"tuning runs the kernel several times, and the second run fails: {fault.reason}",
        "Give @triton.autotune reset_to_zero or restore_value for the tensors that the kernel changes",
        Severity.ERROR,
    )


TUNING = Checker("tuned-twice", "kernels whose result changes when autotuning runs them again", True, _watch)
