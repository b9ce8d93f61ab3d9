"""The version of Proton to be like: that of the installed Triton, and the newest without one."""

from __future__ import annotations

from importlib import metadata

__all__ = ["INTEGER_TYPE", "NUMBERED_REGIONS", "ONE_METADATA_STATE", "TRACE_OF_KERNELS_ALONE"]

_NEWEST = (3, 9)


def _version() -> tuple[int, int]:
    try:
        major, minor = metadata.version("triton").split(".")[:2]
        return int(major), int(minor)
    except (metadata.PackageNotFoundError, ValueError):
        return _NEWEST


_VERSION = _version()
# What whole numbers are called in messages.
INTEGER_TYPE = "int64_t" if _VERSION >= (3, 7) else "uint64_t"
# Whether traces leave out scopes and lanes.
TRACE_OF_KERNELS_ALONE = _VERSION < (3, 7)
# Whether the state in which metadata is computed is the same for all kernels.
ONE_METADATA_STATE = _VERSION < (3, 8)
# Whether `language.record` is called in kernels, with the number of a region.
NUMBERED_REGIONS = _VERSION < (3, 5)
