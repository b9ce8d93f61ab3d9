"""Names of kernels that carry their specialization: `matmul<BM=128 BN=256 BK=64 w8 s3 bf16>`."""

from __future__ import annotations

import re

__all__ = ["base_name", "specialization"]

# C++ names do not match: they have colons, or parameters after the brackets.
_SPECIALIZED = re.compile(r"(?P<base>[\w.$-]+)<(?P<specialization>[^<>]*)>")


def base_name(name: str) -> str:
    """The kernel that a name is a specialization of: what stands before `<`; other names come back unchanged."""
    match = _SPECIALIZED.fullmatch(name)
    return match["base"] if match else name


def specialization(name: str) -> str:
    """What stands between the brackets; empty for names without a specialization."""
    match = _SPECIALIZED.fullmatch(name)
    return match["specialization"] if match else ""
