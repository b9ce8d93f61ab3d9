"""What hooks ask of the native core."""

from __future__ import annotations

from typing import Any


class FakeCore:
    """Stands in for the core, and keeps what it is asked for in order.

    Attributes:
        calls: Functions with their arguments; names of scopes, and when they were entered and left.
        answers: What functions return that return something.
    """

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.answers: dict[str, Any] = {}

    def Scope(self, name: str) -> FakeCore:  # noqa: N802
        self.calls.append(name)
        return self

    def __enter__(self) -> None:
        self.calls.append("enter")

    def __exit__(self, *_: object) -> None:
        self.calls.append("exit")

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            return self.answers.get(name)

        return answer
