"""Scopes inside of Triton kernels, which compile to nothing."""

from __future__ import annotations

__all__ = ["kernel_scope"]


class kernel_scope:  # noqa: N801 - used as `scope` is
    """Names some lines of a Triton or Gluon kernel: `with bragg.kernel_scope("load q"):`.

    The compiled kernel is the same with and without it. `bragg run --instrument` times these lines.

    Args:
        name: A literal: it is read from the source.
    """

    __triton_builtin__ = True

    def __init__(self, name: str, _semantic: object = None) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
