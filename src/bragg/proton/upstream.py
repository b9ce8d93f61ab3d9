"""The version of Proton to be like: that of the installed Triton, and the newest without one."""

from __future__ import annotations

from importlib import metadata

__all__ = ["INTEGER_TYPE", "VERSION"]

_NEWEST = (3, 9)


def _version() -> tuple[int, int]:
    try:
        major, minor = metadata.version("triton").split(".")[:2]
        return int(major), int(minor)
    except (metadata.PackageNotFoundError, ValueError):
        return _NEWEST


VERSION = _version()
# What whole numbers are called in messages.
INTEGER_TYPE = "int64_t" if VERSION >= (3, 7) else "uint64_t"
