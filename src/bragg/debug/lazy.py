"""`functools.cached_property` without its lock, which costs 1 us before Python 3.12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["lazy"]

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801
        """A property that is computed once, when it is first asked for."""

        def __init__(self, function: Any) -> None:
            self._function, self._name = function, function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, owner: Any, kind: Any) -> Any:
            if owner is None:
                return self
            value = owner.__dict__[self._name] = self._function(owner)
            return value
