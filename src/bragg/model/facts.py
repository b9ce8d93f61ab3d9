"""JSON objects of files that anybody may have written, read without trust."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any


class Facts:
    """A JSON object whose values have the type that is asked for; what has another type counts as missing.

    Args:
        value: The object; anything else has no facts.
    """

    def __init__(self, value: object) -> None:
        self._values: Mapping[str, Any] = value if isinstance(value, Mapping) else {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> Mapping[str, Any]:
        """The object itself."""
        return self._values

    def text(self, name: str, missing: str = "") -> str:
        """A value as text."""
        value = self._values.get(name)
        return missing if value is None else str(value)

    def integer(self, name: str) -> int | None:
        """A whole number; None when it is missing."""
        value = self._values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def count(self, name: str) -> int:
        """A whole number that is not negative; 0 when it is missing."""
        return max(self.integer(name) or 0, 0)

    def number(self, name: str) -> float:
        """A finite number; 0 when it is missing."""
        value = self._values.get(name)
        return value if isinstance(value, (int, float)) and math.isfinite(value) else 0

    def is_true(self, name: str) -> bool:
        """Whether a value is present and true."""
        return self._values.get(name) is True

    def is_false(self, name: str) -> bool:
        """Whether a value is present and false."""
        return self._values.get(name) is False

    def is_table(self, name: str) -> bool:
        """Whether a value is an object, which may be empty."""
        return isinstance(self._values.get(name), Mapping)

    def table(self, name: str) -> Facts:
        """An object; an empty one when it is missing."""
        return Facts(self._values.get(name))

    def tables(self) -> dict[str, Facts]:
        """The values that are objects, by name."""
        return {name: Facts(value) for name, value in self._values.items() if isinstance(value, Mapping)}

    def numbered(self) -> list[tuple[int, Facts]]:
        """The values that are objects and have a number as name, by ascending number."""
        return sorted(
            ((int(name), table) for name, table in self.tables().items() if name.isdecimal()), key=lambda item: item[0]
        )

    def texts(self, name: str) -> list[str]:
        """The items of a list as texts; none when it is missing."""
        value = self._values.get(name)
        return [str(item) for item in value] if isinstance(value, list) else []

    def rows(self, name: str) -> list[Mapping[str, Any]]:
        """The items of a list; those that are not objects are empty ones, so that positions mean what they meant."""
        value = self._values.get(name)
        return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list) else []
