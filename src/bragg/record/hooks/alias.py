"""Modules under the names of other modules, which are never loaded then."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any


# Triton's profiler by the modules that stand for it; submodules follow their package.
PROTON = {
    "triton.profiler": "bragg.proton",
    "triton._C.libproton": "bragg.proton.libproton",
    "triton._C.libproton.proton": "bragg.proton.libproton",
}


def alias_modules(names: Mapping[str, str]) -> None:
    """Let imports of some modules, and of their submodules, give others.

    Args:
        names: The module to give, by the name that is imported.
    """
    sys.meta_path.insert(0, _AliasFinder(names))


class _AliasFinder:
    """Finds a module under its other name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec that loads the module that stands for `name`; None when none does."""
        real = self._real_name(name)
        if real is None:
            return None
        found = find_spec(real)
        if found is None:
            return None
        loader: Any = _AliasLoader(name, found)
        has_children = found.submodule_search_locations is not None or any(
            other.startswith(f"{name}.") for other in self._names
        )
        return ModuleSpec(name, loader, origin=found.origin, is_package=has_children)

    def _real_name(self, name: str) -> str | None:
        if name in self._names:
            return self._names[name]
        package, _, rest = name.rpartition(".")
        real_package = self._real_name(package) if package else None
        return f"{real_package}.{rest}" if real_package else None


class _AliasLoader:
    """Gives the module itself, so that both names have one state."""

    def __init__(self, name: str, found: ModuleSpec) -> None:
        self._name = name
        self._found = found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, which the import system then takes for the one it asked for."""
        return importlib.import_module(self._found.name)

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import system did to the module, and give its submodules their other names.

        A submodule that were imported by its other name later would become an attribute of the package, in the place of
        the function or class of the same name.
        """
        module.__spec__ = self._found
        prefix = f"{self._found.name}."
        for name, submodule in list(sys.modules.items()):
            if name.startswith(prefix):
                sys.modules.setdefault(f"{self._name}.{name.removeprefix(prefix)}", submodule)

    def get_code(self, name: str) -> CodeType | None:
        """Code of the module, for `python -m`."""
        loader = self._found.loader
        assert loader is not None
        code: CodeType | None = loader.get_code(self._found.name)  # type: ignore[attr-defined]
        return code

    def is_package(self, name: str) -> bool:
        """Whether the module has submodules."""
        return self._found.submodule_search_locations is not None
