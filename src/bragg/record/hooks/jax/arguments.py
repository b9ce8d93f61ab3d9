"""Which arguments of a jitted function are the same at each call, or new, as its first calls tell."""

from __future__ import annotations

import inspect
import weakref
from itertools import count

from bragg.core import core
from bragg.record.inside.notes import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["ArgumentWatch"]

_MOST_CALLS, _LEAST_CALLS, _MOST_ARRAYS = 16, 3, 512
_numbers = count()


class ArgumentWatch:
    """Compares arguments of the first calls of a function.

    Attributes:
        is_watching: Whether more calls are of interest.

    Args:
        name: Of the function's calls.
        function: A jitted function.
        statics: Its static arguments, for whose values programs are compiled.
    """

    def __init__(self, name: str, function: Any, statics: Iterable[str] = ()) -> None:
        self.is_watching = True
        self._name, self._number = name, next(_numbers)
        self._function: weakref.ref[Any] = weakref.ref(function)
        self._same: dict[str, Any] = {}
        self._values: dict[str, set[int]] = {name: set() for name in statics}
        self._n_calls = 0

    def __call__(self, *arguments: Any, **options: Any) -> bool:
        """See a call, which follows.

        Returns:
            Whether more calls are of interest.
        """
        self._n_calls += 1
        self.is_watching = False
        self._compare(arguments, options)
        return self.is_watching and self._n_calls < _MOST_CALLS

    @guarded
    def _compare(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        from bragg.grouping.hlo_names import SAME_CALLS, with_arguments

        try:
            bound = inspect.signature(self._function() or (lambda: None)).bind(*arguments, **options)
        except (TypeError, ValueError):  # It tells none, or the call fails.
            return
        self._count_values(bound.arguments)
        given = dict(_arrays(bound.arguments))
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
        self.is_watching = bool(self._same or self._values)

    def _count_values(self, arguments: dict[str, Any]) -> None:
        """Those of static arguments; of one that has had a value before nothing more is said."""
        from bragg.grouping.hlo_names import VARIES

        for name, values in self._values.items():
            values.add(hash(arguments.get(name)))
        self._values = {name: values for name, values in self._values.items() if len(values) == self._n_calls}
        for name in self._values if self._n_calls == _LEAST_CALLS else ():
            core.describe_operator(self._name, f"{VARIES}{name}", "a new value at each call")


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
