"""PyTorch: the regions of a training program, without a word of it: data, forward, backward, optimizer, and steps.

Functions are wrapped rather than hooked: PyTorch's hooks are not called when what is between them raises.
"""

from __future__ import annotations

from bragg.record.hooks.methods import is_traced, wrap, wrap_engine, wrap_steps
from bragg.record.inside.regions import REGIONS
from bragg.record.region_names import STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from bragg.record.hooks.imports import Hook
    from bragg.record.hooks.methods import Undo, Wrapper


def region_hooks(wanted: tuple[str, ...], *, operators: bool) -> list[Hook]:
    """The hooks that record the wanted regions.

    Args:
        wanted: Names of regions.
        operators: Operators of PyTorch are recorded too.
    """
    hooks: list[Hook] = []
    if "data" in wanted:
        hooks.append(("torch.utils.data.dataloader", record_data))
    if "forward" in wanted:
        hooks.append(("torch", record_forward))
    if "backward" in wanted:
        hooks.append(("torch", record_backward_of_operators if operators else record_backward))
    if "optimizer" in wanted or STEP in wanted:
        hooks.append(("torch", record_optimizers if "optimizer" in wanted else record_steps))
    return hooks


def record_data(dataloader: ModuleType) -> Undo:
    """Waiting for the next batch, and starting over."""
    iterator, loader = dataloader._BaseDataLoaderIter, dataloader.DataLoader
    undo_next = wrap(iterator, "__next__", lambda function: _in_region("data", function))
    undo_iter = wrap(loader, "__iter__", lambda function: _in_region("data", function, counts=False))

    def undo() -> None:
        undo_next()
        undo_iter()

    return undo


def record_forward(torch: ModuleType) -> Undo:
    """Calls of modules that no module calls, and no backward pass."""
    is_compiling = is_traced(torch)
    graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
    thread = REGIONS.thread

    def recorded(call: Callable[..., Any]) -> Callable[..., Any]:
        # As fast as can be: every module of a model calls it.
        def call_in_forward(self: Any, *arguments: Any, **options: Any) -> Any:
            if is_compiling() or thread.is_in_model or graph_task() != -1:
                return call(self, *arguments, **options)
            return REGIONS.run("forward", call, (self, *arguments), options)

        return call_in_forward

    return wrap(torch.nn.Module, "__call__", recorded)


def record_backward(torch: ModuleType) -> Undo | None:
    """`backward` and `grad`, which both run the engine.

    Returns:
        What undoes it; None when this PyTorch keeps its engine elsewhere.
    """
    graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)
    compilation = torch._guards.TracingContext.try_get

    def recorded(run_backward: Callable[..., Any]) -> Callable[..., Any]:
        run_in_region = _in_region("backward", run_backward)

        def run_unless_inside(*arguments: Any, **options: Any) -> Any:
            # Of a backward pass, or of the compiler, which differentiates what it compiles.
            is_inside = graph_task() != -1 or compilation() is not None
            return (run_backward if is_inside else run_in_region)(*arguments, **options)

        return run_unless_inside

    return wrap_engine(torch, recorded, "backward passes are not regions")


def record_backward_of_operators(torch: ModuleType) -> Undo | None:
    """As `record_backward`, where operators tell the time of backward passes."""
    undo_region = record_backward(torch)
    if undo_region is None:
        return None
    REGIONS.show_backward_as_state(True)

    def undo() -> None:
        REGIONS.show_backward_as_state(False)
        undo_region()

    return undo


def record_optimizers(torch: ModuleType) -> Undo:
    """Steps of optimizers, where training steps end, and clearing gradients."""
    is_compiling = is_traced(torch)

    def clearing_recorded(clear: Callable[..., Any]) -> Callable[..., Any]:
        def clear_in_region(self: Any, *arguments: Any, **options: Any) -> Any:
            if is_compiling():
                return clear(self, *arguments, **options)
            return REGIONS.run("optimizer", clear, (self, *arguments), options, counts=False)

        return clear_in_region

    undo_steps = _record_steps(torch, lambda step: _in_region("optimizer", step))
    undo_clearing = wrap(torch.optim.Optimizer, "zero_grad", clearing_recorded)

    def undo() -> None:
        undo_steps()
        undo_clearing()

    return undo


def record_steps(torch: ModuleType) -> Undo:
    """Where training steps end, without a region of the optimizer."""
    return _record_steps(torch, lambda step: step)


def _record_steps(torch: ModuleType, wrapper: Wrapper) -> Undo:
    """Where training steps end; the optimizer's own step is wrapped once more, for the region that it is."""
    is_compiling = is_traced(torch)

    def step_recorded(step: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = wrapper(step)

        def step_with_end(self: Any, *arguments: Any, **options: Any) -> Any:
            if is_compiling():
                return step(self, *arguments, **options)
            result = wrapped(self, *arguments, **options)
            REGIONS.end_step(self)
            return result

        return step_with_end

    REGIONS.begin()
    return wrap_steps(torch, step_recorded)


def _in_region(name: str, function: Callable[..., Any], *, counts: bool = True) -> Callable[..., Any]:
    def call_in_region(*arguments: Any, **options: Any) -> Any:
        return REGIONS.run(name, function, arguments, options, counts=counts)

    return call_in_region
