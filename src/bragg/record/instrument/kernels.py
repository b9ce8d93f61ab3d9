"""Which kernels get clocks: the hooks into what loads and launches them."""

from __future__ import annotations

from functools import partial

from bragg.record.hooks.torch import inductor as generated
from bragg.record.hooks.triton import kernel_names
from bragg.record.inside import metadata
from bragg.record.instrument.chosen import Chosen
from bragg.record.instrument.inductor import instrument_inductor
from bragg.record.instrument.tuning import follow_triton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook


META = "inside_kernels"
"""Key of the meta."""


def clock_hooks(options: Mapping[str, Any]) -> list[Hook]:
    """The hooks that give clocks to kernels.

    Args:
        options: What to record, as `RecordConfig.options` lists it.
    """
    chosen = Chosen(options)
    return [("triton", partial(instrument_triton, chosen)), (generated.MODULE, partial(instrument_inductor, chosen))]


def instrument_triton(chosen: Chosen, triton: ModuleType) -> Callable[[], None]:
    """Give clocks to the kernels of Triton that are loaded from now on and that are wanted.

    Args:
        chosen: The kernels of the recording.
        triton: The package.

    Returns:
        What undoes it: kernels that have clocks keep them, and are launched without.
    """

    def loaded(kernel: Any, name: str) -> None:
        if chosen.wants(name, getattr(kernel.src, "fn", None)):
            launcher = "_run" if "_run" in vars(kernel) else "run"  # Triton 3.4 has the launcher as an attribute
            setattr(kernel, launcher, chosen.undecided(lambda: kernel, name, vars(kernel)[launcher]))

    metadata.tell_at_stop(META, chosen.results)
    undo_tuning, undo_loading = follow_triton(triton), kernel_names.follow_loading(loaded)

    def undo() -> None:
        chosen.end()
        undo_loading()
        undo_tuning()

    return undo
