"""States: what a thread is doing, as the innermost frame of its call paths. A thread has one state at most."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from bragg.proton.recording import open_scopes

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "COMPUTE_METADATA_SCOPE_PREFIX",
    "enter_state",
    "exit_state",
    "get_metadata_state_name",
    "metadata_state",
    "state",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The state in which functions of `launch_metadata` run.
COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"
COMPUTE_METADATA_SCOPE_PREFIX = f"{COMPUTE_METADATA_SCOPE_NAME}:"


class state:  # noqa: N801 (Proton's name)
    """A state for the length of a block or a function; the one before comes back after it.

    Args:
        name: Shown in call paths.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._before: list[str | None] = []

    def __enter__(self) -> state:
        self._before.append(open_scopes.replace_state(self.name))
        return self

    def __exit__(self, *raised: object) -> None:
        open_scopes.replace_state(self._before.pop())

    def __call__(self, function: _Function) -> _Function:
        """The function in this state."""

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            with state(self.name):
                return function(*arguments, **options)

        return call  # type: ignore[return-value]


class metadata_state(state):  # noqa: N801 (Proton's name)
    """The state in which the metadata of a launch is computed.

    Args:
        kernel_name: Of the kernel, if it is known.
    """

    def __init__(self, kernel_name: str | None = None) -> None:
        super().__init__(get_metadata_state_name(kernel_name))


def enter_state(name: str) -> None:
    """Set the state of this thread."""
    open_scopes.replace_state(name)


def exit_state() -> None:
    """Leave this thread without a state."""
    open_scopes.replace_state(None)


def get_metadata_state_name(kernel_name: str | None = None) -> str:
    """What the state of computing metadata is called."""
    return f"{COMPUTE_METADATA_SCOPE_PREFIX}{kernel_name}" if kernel_name else COMPUTE_METADATA_SCOPE_NAME
