"""Run a function right after a module was imported."""

from __future__ import annotations

import sys

from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Hook = tuple[str, Callable[[ModuleType], Callable[[], None] | None]]
    """A module's name, and what is called with the module; see `when_imported`."""


def when_imported(name: str, callback: Callable[[ModuleType], Callable[[], None] | None]) -> ImportWatch:
    """Call back once with a module: now if it is imported already, else when its import has succeeded.

    Args:
        name: Full name of the module.
        callback: Returns what undoes its effect, if anything does. Its exceptions become one line on stderr:
            a hook must not break the program it watches.
    """
    watch = ImportWatch(name, callback)
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        sys.meta_path.insert(0, watch)
    else:
        watch.imported(module)
    return watch


class ImportWatch:
    """A finder that finds nothing itself: it lets the others find and watches the loader of one module."""

    def __init__(self, name: str, callback: Callable[[ModuleType], Callable[[], None] | None]) -> None:
        self.name = name
        self._callback = guarded(callback)
        self._undo: Callable[[], None] | None = None

    def imported(self, module: ModuleType) -> None:
        """Call back, and wait no longer."""
        self._stop_waiting()
        self._undo = self._callback(module)

    def remove(self) -> None:
        """Stop waiting, or undo what the callback did."""
        self._stop_waiting()
        undo, self._undo = self._undo, None
        if undo is not None:
            guarded(undo)()

    def _stop_waiting(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find by the finders after this one."""
        if name != self.name:
            return None
        later = sys.meta_path[sys.meta_path.index(self) + 1 :]
        for finder in later:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _WatchedLoader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None


class _WatchedLoader:
    """Stands in for a loader until the module's code runs; the module itself never sees it."""

    def __init__(self, loader: Any, watch: ImportWatch) -> None:
        self._loader = loader
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._watch.imported(module)
