"""PyTorch's profiler of version 2 of CUPTI, which records beside others if all use that version."""

from __future__ import annotations

import os
import sys

from bragg.record.inside.notes import note
from bragg.record.variables import CUPTI_SHARED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


# What `CuspyConfig` collects with, imported when that is first used; and its former name.
MODULES = ("torch.profiler._cuspy", "torch.profiler._cupti")


def share_cupti(module: ModuleType) -> None:
    """Let bragg use version 2 of CUPTI, or say that it is too late: the first version that a process uses stays."""
    if CUPTI_SHARED in os.environ:
        return
    if sys.modules["torch"].cuda.is_initialized():
        note(f"{module.__name__} gets no GPU times beside bragg; set {CUPTI_SHARED}=1 before the program starts")
    else:
        os.environ[CUPTI_SHARED] = "1"
