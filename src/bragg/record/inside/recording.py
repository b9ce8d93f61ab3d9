"""One native session of this process, from its options to its end."""

from __future__ import annotations

import json
import os
import signal
import sys
from threading import RLock

from bragg.core import core
from bragg.record.backends import choose_backend
from bragg.record.hooks.imports import when_imported
from bragg.record.inside import metadata
from bragg.record.inside.notes import note
from bragg.record.inside.regions import REGIONS, since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from bragg.record.hooks.imports import Hook, ImportWatch
    from bragg.record.inside.regions import Reading


class Recording:
    """A running native session with the hooks that feed it.

    Args:
        part_path: The capture.
        options: What to record, as `RecordConfig.options` lists it.
        is_active: Whether this process is recorded; else its forks alone are.

    Attributes:
        session: The native session.
        backend: What measures.

    Raises:
        OSError: The capture cannot be created.
        RuntimeError: The backend cannot measure here; `auto` falls back to the CPU and says so.
    """

    def __init__(self, part_path: str, options: Mapping[str, Any], *, is_active: bool = True) -> None:
        self._options = {**options, "context": _possible_context(options["context"])}
        self.backend = choose_backend(options["backend"], os.environ)
        try:
            self.session = self._start(part_path, samples_host=is_active)
        except RuntimeError as error:
            if options["backend"] != "auto":
                raise
            self.backend = choose_backend("cpu", os.environ)
            self.session = self._start(part_path, samples_host=is_active)
            note(f"the GPU is not recorded: {error}")
        if not is_active:
            self.session.deactivate()
        self._has_timeline = options["data"] == "trace"
        if self._has_timeline:
            REGIONS.spans.begin()
        self._regions, self._n_spans = _reading(), len(REGIONS.spans)
        self._hooks = self.backend.hooks(options)
        _HOOKS.acquire(self._hooks)

    def restart(self, part_path: str) -> None:
        """In a forked child: record into a capture of its own; the inherited one is the parent's."""
        self.session = self._start(part_path)
        self._regions, self._n_spans = _reading(), len(REGIONS.spans)

    def advance(self, part_path: str, phase: int) -> None:
        """Record the next phase, into a capture of its own; the one before ends when its records have come.

        Raises:
            OSError: The capture cannot be created.
            RuntimeError: The core cannot record one more phase.
        """
        meta = {**metadata.at_start(self.backend.name, self._options), "phase": phase}
        self.session.advance(part_path, meta=json.dumps(meta), end_meta=self._meta_at_stop(is_end=False))

    def stop(self) -> None:
        """End the session and complete its capture."""
        try:
            self.session.stop(self._meta_at_stop(is_end=True))
        finally:
            _HOOKS.release(self._hooks)
            if self._has_timeline:
                REGIONS.spans.end()

    def _meta_at_stop(self, *, is_end: bool) -> str:
        before, self._regions = self._regions, _reading()
        regions = since(before, self._regions)
        spans = REGIONS.spans.since(self._n_spans) if self._has_timeline else {}
        self._n_spans = len(REGIONS.spans)
        found = {"regions": regions, "region_spans": spans}
        return json.dumps({**metadata.at_stop(is_end=is_end), **{key: value for key, value in found.items() if value}})

    def _start(self, part_path: str, *, samples_host: bool = True) -> core.Session:
        options = {**self._options, "backend": self.backend.name}
        if not samples_host:
            options["sample_interval_us"] = 0
        elif options["sample_interval_us"] is None:
            options["sample_interval_us"] = self.backend.sample_interval_us
        # The core's threads inherit this mask: a signal that they took would not wake the main thread, on which alone
        # Python runs the program's handlers.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            return core.Session(
                part_path,
                json.dumps(options),
                meta=json.dumps(metadata.at_start(self.backend.name, self._options)),
                cupti_candidates=self.backend.library_candidates(os.environ, sys.path),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _reading() -> Reading:
    """Times of regions and steps until now."""
    calls = {f"step of {name}": steps for name, steps in core.read_call_steps().items()}
    return {**REGIONS.reading(), **calls}


def _possible_context(wanted: str) -> str:
    """The wanted context, as far as this interpreter and this processor let frames be read."""
    if wanted != "shadow" and not core._walk_available():
        note(f"Python call paths cannot be read in this interpreter: recording with --context shadow, not {wanted}")
        return "shadow"
    if wanted == "native" and not core._can_unwind():
        note("native call paths are read on x86-64 and aarch64 alone: recording with --context python")
        return "python"
    return wanted


class _SharedHooks:
    """Hooks, installed while any session of any thread needs them."""

    def __init__(self) -> None:
        self._users: dict[Hook, int] = {}
        self._watches: dict[Hook, ImportWatch] = {}
        self._free_lock()
        os.register_at_fork(after_in_child=self._free_lock)

    def _free_lock(self) -> None:
        self._lock = RLock()  # not the lock that a thread held which the child does not have

    def acquire(self, hooks: Sequence[Hook]) -> None:
        with self._lock:
            for hook in hooks:
                self._users[hook] = self._users.get(hook, 0) + 1
                if self._users[hook] == 1:
                    self._watches[hook] = when_imported(*hook)

    def release(self, hooks: Sequence[Hook]) -> None:
        with self._lock:
            for hook in reversed(hooks):
                self._users[hook] -= 1
                if self._users[hook] == 0:
                    self._watches.pop(hook).remove()


_HOOKS = _SharedHooks()
