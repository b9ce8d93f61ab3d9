"""Acts on a module when the program imports it, so that nobody waits for an import that is not needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    """Finds one module in the usual way, and acts after it was executed."""

    def __init__(self, name: str, action: Action) -> None:
        self._name, self._action = name, action

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that the finders after this one give, with an action after the module's execution."""
        if name != self._name:
            return None
        later = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(name, path, target) for finder in later if hasattr(finder, "find_spec"))
        spec = next((one for one in found if one is not None), None)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            self._action(module)

        loader.exec_module = execute_and_act
        return spec


def when_imported(name: str, action: Action) -> Callable[[], None]:
    """Act on a module: now if it is there, else when it is imported.

    Returns:
        What stops waiting for it.
    """
    if name in sys.modules:
        action(sys.modules[name])
        return lambda: None
    finder = _Finder(name, action)
    sys.meta_path.insert(0, finder)
    return lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None


@contextmanager
def on_import(name: str, action: Action) -> Iterator[None]:
    """Act on a module that is imported inside of a block, or was before."""
    stop = when_imported(name, action)
    try:
        yield
    finally:
        stop()
