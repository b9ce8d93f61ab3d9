"""The names of `triton.profiler.hook`, the hooks of Triton 3.4."""

from __future__ import annotations

from bragg.proton.hooks.hook import HookManager
from bragg.proton.hooks.launch import LaunchHook
from bragg.proton.state import COMPUTE_METADATA_SCOPE_NAME

__all__ = ["COMPUTE_METADATA_SCOPE_NAME", "register_triton_hook", "unregister_triton_hook"]

_NO_SESSION = -1


def register_triton_hook() -> None:
    """Let `launch_metadata` name kernels and give them metrics, whatever session records."""
    HookManager.register(LaunchHook(), _NO_SESSION)


def unregister_triton_hook() -> None:
    """Undo `register_triton_hook`."""
    HookManager.unregister(_NO_SESSION)
