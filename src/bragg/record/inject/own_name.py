"""Programs that have a module or package `bragg` of their own: they get theirs, and the recorder goes by another name.

The recorder's modules import each other as `bragg.…`. So each of them is executed with an `__import__` and an
`importlib` that read this name as the private one; `sys.modules` has the program's `bragg` alone.
"""
# ruff: noqa: PTH100, PTH110, PTH113, PTH118, PTH120
# Runs before the program has imported anything: `pathlib` would add 10 ms to its start.

from __future__ import annotations

import builtins
import importlib
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


PRIVATE_NAME = "_bragg_recorder"
_NAME = "bragg"
# Where a program found its own, for children of `multiprocessing`, which do not say which script they continue.
_FOUND_IN = "BRAGG_OWN_MODULE"
_VALUED_OPTIONS = "WX"


def has_own_module() -> bool:
    """Whether `import bragg` in the program would import another module than this profiler."""
    for finder in sys.meta_path:
        found = _on_path() if finder is PathFinder else _by_finder(finder)
        if found is not None:
            spec, entry = found
            if _is_profiler(spec):
                return False
            os.environ[_FOUND_IN] = os.path.abspath(entry)
            return True
    return False


def _on_path() -> tuple[Any, str] | None:
    for entry in [*_entries_of_program(sys.orig_argv[1:]), *sys.path]:
        spec = PathFinder.find_spec(_NAME, [entry])
        if spec is not None and spec.loader is not None:  # Without: a directory that is not a package.
            return spec, entry
    return None


def _by_finder(finder: Any) -> tuple[Any, str] | None:
    find = getattr(finder, "find_spec", None)
    spec = find(_NAME, None) if find is not None else None
    return (spec, os.curdir) if spec is not None else None


def _entries_of_program(arguments: Sequence[str]) -> Iterator[str]:
    """What the interpreter will put before `sys.path` for the program it is given; empty: where it runs."""
    if "--multiprocessing-fork" in arguments or any("multiprocessing.forkserver" in word for word in arguments):
        yield from filter(None, [os.environ.get(_FOUND_IN)])
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return
    words = iter(arguments)
    for word in words:
        if word == "-" or not word.startswith("-"):
            script = os.path.realpath(word)
            yield "" if word == "-" else os.path.dirname(script) if _is_source(script) else script
            return
        for position, letter in enumerate(word[1:] if word[1:2] != "-" else ""):
            if letter in "cm":
                yield ""
                return
            if letter in _VALUED_OPTIONS:
                if position + 2 == len(word):
                    next(words, None)
                break
    yield ""  # Interactive, or a program on stdin.


def _is_source(path: str) -> bool:
    return os.path.isfile(path) and not path.endswith((".zip", ".pyz", ".whl", ".egg"))


def _is_profiler(spec: Any) -> bool:
    inject = os.path.join("record", "inject", "sitecustomize.py")
    return any(os.path.exists(os.path.join(place, inject)) for place in spec.submodule_search_locations or ())


def import_privately(package: str, places: Sequence[str]) -> None:
    """Import the recorder under its private name.

    Args:
        package: Its directory.
        places: Where its modules are.
    """
    sys.meta_path.insert(0, _Finder())
    path = os.path.join(package, "__init__.py")
    loader = _Loader(PRIVATE_NAME, path)
    spec = spec_from_file_location(PRIVATE_NAME, path, loader=loader, submodule_search_locations=list(places))
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[PRIVATE_NAME] = module
    loader.exec_module(module)


class _Finder:
    """Finds the recorder's modules below its private name."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> Any:
        spec = PathFinder.find_spec(name, path) if name.startswith(f"{PRIVATE_NAME}.") else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = _BUILTINS
        super().exec_module(module)


def _private(name: str) -> str:
    return PRIVATE_NAME + name.removeprefix(_NAME) if name == _NAME or name.startswith(f"{_NAME}.") else name


def _import(name: str, scope: Any = None, variables: Any = None, wanted: Any = (), level: int = 0) -> ModuleType:
    found = builtins.__import__(_private(name) if level == 0 else name, scope, variables, wanted, level)
    if found is not importlib:
        return found
    vars(_IMPORTLIB).update({key: value for key, value in vars(importlib).items() if key != "import_module"})
    return _IMPORTLIB


def _import_module(name: str, package: str | None = None) -> ModuleType:
    return importlib.import_module(_private(name), package)


_BUILTINS = {**vars(builtins), "__import__": _import}
_IMPORTLIB = ModuleType("importlib")
vars(_IMPORTLIB)["import_module"] = _import_module
