"""The hooks into frameworks that record their operators."""

from __future__ import annotations

from bragg.record.hooks.jax import conditions, jacobians, profiler, programs
from bragg.record.hooks.jax import distributed as jax_distributed
from bragg.record.hooks.jax import memory as jax_memory
from bragg.record.hooks.jax.calls import CALL_HOOKS
from bragg.record.hooks.torch import (
    autograd,
    checkpoint,
    compiler,
    distributed,
    modules,
    operators,
    regions,
    segments,
    updates,
    waits,
)
from bragg.record.hooks.transformers import DECODING_HOOK
from bragg.record.region_names import STEP, chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bragg.record.hooks.imports import Hook


def operator_hooks(options: Mapping[str, Any]) -> list[Hook]:
    """The hooks that record operators of the wanted frameworks.

    Args:
        options: What to record, as `RecordConfig.options` lists it.
    """
    wants_modules = options["modules"]
    wants_shapes = options["shapes"]
    framework = options["framework"]
    wanted = ("torch", "jax") if framework == "auto" else (framework,)
    wanted_regions = chosen(options["regions"])
    hooks: list[Hook] = []
    if "torch" in wanted or wants_modules or wants_shapes:
        wanted_regions = (STEP, *wanted_regions)
        hooks += [
            ("torch", autograd.follow_backward),
            ("torch", operators.record_shaped_operators if wants_shapes else operators.record_operators),
            ("torch", waits.record_waits),
            (checkpoint.MODULE, checkpoint.mark_recomputation),
            DECODING_HOOK,
        ]
    if wants_modules:
        hooks += [("torch", modules.record_modules), ("torch", updates.record_updates)]
    hooks += regions.region_hooks(wanted_regions, operators=bool(hooks))
    if "jax" in wanted:
        hooks += [
            ("jax", programs.read_ranges),
            (profiler.MODULE, profiler.record_annotations),
            *CALL_HOOKS,
            (programs.COMPILER, programs.record_compilations),
            conditions.HOOK,
            jacobians.HOOK,
        ]
    if options["memory"]:
        hooks += [jax_memory.HOOK, segments.HOOK]
    return [*hooks, *distributed.HOOKS, jax_distributed.HOOK, (compiler.MODULE, compiler.begin_at_the_program)]
