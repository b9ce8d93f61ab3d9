"""Takes calls of `pallas_call` to the engine; its part for Pallas is imported when JAX's is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bragg.debug.host.imports import on_import

if TYPE_CHECKING:
    from bragg.debug.report import Report


@contextmanager
def checked_pallas_calls(report: Report, checkers: frozenset[str]) -> Iterator[None]:
    """Execute and check the Pallas kernels that are called in a block.

    Calls inside of `jax.jit` are checked too: while the block lasts, JAX executes functions as they are written. What
    `vmap` and `grad` make of a kernel is a call of its own.
    """
    undo: list[Callable[[], None]] = []

    def replace(_pallas: Any) -> None:
        import jax
        from jax._src.pallas.pallas_call import pallas_call_p

        from bragg.debug.pallas.calls import checked_call

        config: Any = jax.config
        original, is_disabled = pallas_call_p.impl, config.jax_disable_jit
        pallas_call_p.def_impl(checked_call(report, checkers))
        config.update("jax_disable_jit", True)
        undo.append(lambda: pallas_call_p.def_impl(original))
        undo.extend(_checked_meshes(report, checkers))
        undo.append(lambda: config.update("jax_disable_jit", is_disabled))

    with on_import("jax.experimental.pallas", replace):
        try:
            yield
        finally:
            for one in undo:
                one()


def _checked_meshes(report: Report, checkers: frozenset[str]) -> list[Callable[[], None]]:
    """Take kernels over meshes, too, where JAX has them: since 0.10. Gives what undoes it."""
    try:
        from jax._src.pallas import mpmd
    except ImportError:
        return []
    from bragg.debug.pallas.meshes import checked_mesh

    original, around = mpmd.mpmd_map_p.impl, mpmd.mpmd_map_tracing_context

    @contextmanager
    def traced_with_loops(*given: Any) -> Iterator[None]:
        """Loops of a kernel stay loops, though JAX executes what is around it as it is written."""
        import jax

        with jax.disable_jit(False), around(*given):
            yield

    mpmd.mpmd_map_p.def_impl(checked_mesh(report, checkers))
    mpmd.mpmd_map_tracing_context = traced_with_loops
    return [
        lambda: mpmd.mpmd_map_p.def_impl(original),
        lambda: setattr(mpmd, "mpmd_map_tracing_context", around),
    ]
