"""Kernels of Mosaic GPU, which `plgpu.kernel` runs over a mesh of blocks and warpgroups."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.pallas.references import Whole, whole_reference
from bragg.debug.pallas.warpgroups import Block
from bragg.debug.pallas.watching import Watcher

if TYPE_CHECKING:
    from bragg.debug.report import Report


def checked_mesh(report: Report, checkers: frozenset[str]) -> Callable[..., Any]:
    """What stands in for the implementation of `mpmd_map` while a session checks."""

    def mpmd_map(*given: Any, **params: Any) -> list[Any]:
        import jax

        return [jax.numpy.asarray(one) for one in _run(params, given, report, checkers)]

    return mpmd_map


def _run(params: dict[str, Any], given: Sequence[Any], report: Report, checkers: frozenset[str]) -> list[Any]:
    mesh, jaxpr = _only_mesh(params), params["jaxprs"][0]
    axes = {
        **dict(zip(mesh.grid_names, mesh.grid, strict=True)),
        **dict(zip(mesh.cluster_names, mesh.cluster, strict=True)),
    }
    grid = tuple(axes.values())
    watcher = Watcher(_source(jaxpr), grid, report, checkers, is_parallel=True)
    inputs = [Whole(f"argument {k}", np.array(one), np.ones(np.shape(one), bool)) for k, one in enumerate(given)]
    outputs = [
        Whole(f"result {k}", np.zeros(one.shape, one.dtype), np.zeros(one.shape, bool))
        for k, one in enumerate(params["out_avals"])
    ]
    for source_number, target in dict(params["input_output_aliases"]).items():
        outputs[target] = inputs[source_number]
    references = [whole_reference(one) for one in (*inputs, *outputs)]
    for number in range(math.prod(grid)):
        watcher.program = number
        place = np.unravel_index(number, grid) if grid else ()
        numbers = {name: int(one) for name, one in zip(axes, place, strict=True)}
        Block(watcher, numbers, mesh.num_threads or 1, mesh.thread_name).run(jaxpr, references)
    watcher.judge()
    return [one.data for one in outputs]


def _only_mesh(params: dict[str, Any]) -> Any:
    meshes = params["meshes"]
    names = [type(one).__module__.split(".")[-2] for one in (*meshes, *params["external_meshes"])]
    if names != ["mosaic_gpu"]:
        raise Unsupported(
            f"Pallas kernels over meshes of {' and '.join(names)} are not supported",
            hint="Those of plgpu.kernel are, and those of pl.pallas_call",
        )
    return meshes[0]


def _source(jaxpr: Any) -> str:
    """The kernel's function, which the outermost `run_scoped` calls."""
    scopes = (one.params["jaxpr"] for one in jaxpr.eqns if one.primitive.name == "run_scoped")
    return str(next(scopes, jaxpr).debug_info.func_src_info)
