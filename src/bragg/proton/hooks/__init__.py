"""Hooks: code that runs at each launch of a Triton kernel."""

from bragg.proton.hooks.hook import Hook, HookManager
from bragg.proton.hooks.instrumentation import InstrumentationHook
from bragg.proton.hooks.launch import LaunchHook

__all__ = ["Hook", "HookManager", "InstrumentationHook", "LaunchHook"]
