"""Which arguments of a jitted function are the same at each call, or new, as some of its calls tell."""

from __future__ import annotations

import dataclasses
import inspect
import weakref
from itertools import count

from bragg.core import core
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


_MOST_CALLS, _LEAST_CALLS, _MOST_ARRAYS = 16, 3, 512
_LEAST_VALUES = 3  # two are a choice, such as that of training or not
_numbers = count()
_watches: weakref.WeakSet[ArgumentWatch] = weakref.WeakSet()


class ArgumentWatch:
    """Compares arguments of the first calls of a function, and of those after it was compiled again.

    Attributes:
        is_watching: Whether more calls are of interest.
        words: Letters and digits of the function's calls.

    Args:
        name: Of the function's calls.
        function: A jitted function.
        statics: Its static arguments, for whose values programs are compiled.
    """

    def __init__(self, name: str, function: Any, statics: Iterable[str] = ()) -> None:
        self.is_watching = True
        self._name, self._number = name, next(_numbers)
        self.words = "".join(filter(str.isalnum, name))
        self._function: weakref.ref[Any] = weakref.ref(function)
        self._same: dict[str, Any] = {}
        self._statics = tuple(statics)
        self._values: dict[str, set[int]] = {}
        self._n_calls = 0
        self._is_again = False
        _watches.add(self)

    def __call__(self, *arguments: Any, **options: Any) -> bool:
        """See a call, which follows.

        Returns:
            Whether more calls are of interest.
        """
        self._n_calls += 1
        self.is_watching = False
        if self._is_again:
            self._look_again(arguments, options)
            return False
        self._compare(arguments, options)
        self.is_watching = self.is_watching and self._n_calls < _MOST_CALLS
        return self.is_watching

    @guarded
    def _compare(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        from bragg.grouping.hlo_names import SAME_CALLS, with_arguments

        bound = self._bound(arguments, options)
        if bound is None:
            return
        varying = self._count_values(bound)
        if self._n_calls == _LEAST_CALLS:
            self._tell(varying)
        given = dict(_arrays(bound))
        if len(given) > _MOST_ARRAYS:
            return
        if self._n_calls == 1:
            self._same = {name: _known(value) for name, value in given.items()}
        before = len(self._same)
        self._same = {name: known for name, known in self._same.items() if known() is given.get(name)}
        has_changed = self._n_calls == _LEAST_CALLS or len(self._same) < before
        is_some = len(self._same) < len(given)  # else the program only measures
        if self._n_calls >= _LEAST_CALLS and has_changed and is_some:
            # Of several values of one key the first one would stay.
            key = f"{SAME_CALLS}{self._number} of {self._n_calls} calls"
            core.describe_operator(self._name, key, with_arguments("", self._same))
        self.is_watching = bool(self._same or varying)

    def watch_again(self) -> None:
        """See one more call: a program was compiled for values that the calls before had not."""
        function = self._function()
        if function is not None and not self.is_watching:
            self._is_again = core.watch_arguments(function, self)

    @guarded
    def _look_again(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        bound = self._bound(arguments, options)
        if bound is not None:
            self._count_values(bound)
            self._tell([name for name, values in self._values.items() if len(values) >= _LEAST_VALUES])

    def _bound(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any] | None:
        """Arguments by name; None: the function tells none, or the call fails."""
        try:
            return inspect.signature(self._function() or (lambda: None)).bind(*arguments, **options).arguments
        except (TypeError, ValueError):
            return None

    def _count_values(self, arguments: dict[str, Any]) -> list[str]:
        """Add those of static arguments, and of static fields; names of those that had a new one at each call."""
        given = {name: arguments.get(name) for name in self._statics}
        given |= {f"{name}.{field}": value for name, each in arguments.items() for field, value in _static_fields(each)}
        for name, value in given.items():
            self._values.setdefault(name, set()).add(hash(value))
        return [name for name, values in self._values.items() if len(values) == self._n_calls]

    def _tell(self, names: Iterable[str]) -> None:
        from bragg.grouping.hlo_names import VARIES

        for name in names:
            core.describe_operator(self._name, f"{VARIES}{name}", "several values")


def watch_again(module: str) -> None:
    """See one more call of each function whose module's name this is, which is compiled once more."""
    words = "".join(filter(str.isalnum, module))
    for each in [*_watches]:
        if each.words == words:
            each.watch_again()


def _static_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Numbers and texts in a dataclass that are no part of JAX's tree, as those of Flax, Equinox and JAX say."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            is_static = field.metadata.get("static", not field.metadata.get("pytree_node", True))
            known = getattr(value, field.name, None) if is_static else None
            if isinstance(known, (int, float, str)):
                yield field.name, known


def _arrays(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arrays in arguments, called as JAX calls them."""
    from jax.tree_util import keystr, tree_flatten_with_path

    for argument, value in arguments.items():
        for path, leaf in tree_flatten_with_path(value)[0]:
            yield f"{argument}{keystr(path)}", leaf


def _known(value: Any) -> Any:
    """What gives the value as long as it lives: arrays of NumPy and numbers may change."""
    import jax

    return weakref.ref(value) if isinstance(value, jax.Array) else lambda: _known
