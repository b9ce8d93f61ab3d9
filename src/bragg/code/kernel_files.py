"""Where the compiler of Triton keeps what it made of a kernel, noted when the kernel is loaded.

Every process of a run that uses Triton imports this: it must stay small.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["CODE", "COMPILED_FOR_TARGET", "FILES", "GRIDS", "SIZES", "attributes_of", "sizes_of"]

# Attributes of a kernel's frame: the name of its texts in the profile, `symbol/hash`, and the file that describes it,
# beside which the others are.
CODE, FILES = "code", "code_files"
COMPILED_FOR_TARGET = "compiled_for_target"
"""Of the meta: attributes of kernels that were executed on the CPU, by name."""
SIZES = "sizes"
"""Whole numbers that its first launch passed: `n=781 stride=1024`."""
GRIDS = "grids"
"""Of a kernel that was executed on the CPU, its grids and how often it had each: `16x1x1=3 4x4x1=1`."""


def sizes_of(arguments: Mapping[str, Any]) -> str:
    """The value of `SIZES` by what a launch passed."""
    return " ".join(f"{name}={value}" for name, value in arguments.items() if type(value) is int)


def attributes_of(kernel: Any) -> list[tuple[str, str]]:
    """What to note of a compiled kernel, as attributes of its frame; nothing when it has no files.

    Args:
        kernel: A `CompiledKernel`, or an object with the same `name`, `hash` and, unless Triton's cache has the files,
            `metadata_group`.
    """
    files: Mapping[str, Any] = getattr(kernel, "metadata_group", None) or _cached_files(kernel)
    description = next((path for name, path in files.items() if name.endswith(".json")), None)
    if description is None:
        return []
    return [(CODE, f"{kernel.name}/{kernel.hash[:8]}"), (FILES, str(description))]


def _cached_files(kernel: Any) -> Mapping[str, Any]:
    """Files of a kernel of Triton 3.4, which forgets them after it has read them."""
    from triton.runtime.cache import get_cache_manager

    # Names are cut to what file systems allow.
    group: Mapping[str, Any] = get_cache_manager(kernel.hash).get_group(f"{kernel.name[:150]}.json") or {}
    return group
