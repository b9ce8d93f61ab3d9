"""Executes the jaxpr of a Pallas kernel for one program after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.pallas.references import Reference, Whole, indices_of

__all__ = ["Evaluation", "scratch_reference"]

Watch = Callable[[str, Reference, tuple[Any, ...], Any], None]

_HINT = "See docs/guides/debugging.md for what is"


class Evaluation:
    """One program.

    Args:
        ids: Its place in the grid.
        grid: Programs along each axis.
        watch: Called before every access with kind, reference, indices of the block, equation.
    """

    def __init__(self, ids: tuple[int, ...], grid: tuple[int, ...], watch: Watch) -> None:
        self._ids, self._grid, self._watch = ids, grid, watch
        self._used: frozenset[Any] = frozenset()

    def run(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr."""
        values: dict[Any, Any] = {}
        for variables, given in ((jaxpr.constvars, constants), (jaxpr.invars, arguments)):
            values.update(zip(variables, given, strict=True))

        def read(one: Any) -> Any:
            return one.val if hasattr(one, "val") else values[one]

        self._used = _used(jaxpr)
        for equation in jaxpr.eqns:
            results = self._execute(equation, [read(one) for one in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
            self._used = _used(jaxpr)
        return [read(one) for one in jaxpr.outvars]

    def _execute(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        name = equation.primitive.name
        own = getattr(self, f"_do_{name}", None)
        if own is not None:
            return own(equation, given)  # type: ignore[no-any-return]
        if any(isinstance(one, Reference) for one in given):
            return self._call(equation, given)
        result = equation.primitive.bind(*given, **equation.params)
        return result if equation.primitive.multiple_results else [result]

    def _call(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        inner = next((equation.params[key] for key in ("jaxpr", "call_jaxpr") if key in equation.params), None)
        if inner is None:
            raise Unsupported(f"{equation.primitive.name} of Pallas kernels is not supported", hint=_HINT)
        return self._closed(inner, given)

    def _closed(self, jaxpr: Any, given: Sequence[Any]) -> list[Any]:
        is_closed = hasattr(jaxpr, "consts")
        return self.run(jaxpr.jaxpr if is_closed else jaxpr, jaxpr.consts if is_closed else (), given)

    def _do_program_id(self, equation: Any, _given: list[Any]) -> list[Any]:
        return [np.int32(self._ids[equation.params["axis"]])]

    def _do_num_programs(self, equation: Any, _given: list[Any]) -> list[Any]:
        return [np.int32(self._grid[equation.params["axis"]])]

    def _do_get(self, equation: Any, given: list[Any]) -> list[Any]:
        return [self._read(equation, given[0], given[1:])]

    def _do_swap(self, equation: Any, given: list[Any]) -> list[Any]:
        # What `ref[...] = x` does not look at is not read.
        is_read = equation.outvars[0] in self._used
        old = self._read(equation, given[0], given[2:]) if is_read else np.zeros((), given[0].whole.data.dtype)
        self._write(equation, given[0], given[2:], given[1])
        return [old]

    def _do_addupdate(self, equation: Any, given: list[Any]) -> list[Any]:
        old = self._read(equation, given[0], given[2:])
        self._write(equation, given[0], given[2:], old + np.asarray(given[1]))
        return []

    def _do_cond(self, equation: Any, given: list[Any]) -> list[Any]:
        branches = equation.params["branches"]
        return self._closed(branches[min(max(int(given[0]), 0), len(branches) - 1)], given[1:])

    def _do_while(self, equation: Any, given: list[Any]) -> list[Any]:
        n_test, n_body = equation.params["cond_nconsts"], equation.params["body_nconsts"]
        test, body = given[:n_test], given[n_test : n_test + n_body]
        carried = given[n_test + n_body :]
        while bool(self._closed(equation.params["cond_jaxpr"], [*test, *carried])[0]):
            carried = self._closed(equation.params["body_jaxpr"], [*body, *carried])
        return carried

    def _do_scan(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        n_constants, n_carried, length = params["num_consts"], params["num_carry"], params["length"]
        constants, carried = given[:n_constants], given[n_constants : n_constants + n_carried]
        series = given[n_constants + n_carried :]
        collected: list[list[Any]] = []
        for step in reversed(range(length)) if params["reverse"] else range(length):
            results = self._closed(params["jaxpr"], [*constants, *carried, *(one[step] for one in series)])
            carried = results[:n_carried]
            collected.append(results[n_carried:])
        if params["reverse"]:
            collected.reverse()
        return [*carried, *(np.stack([np.asarray(row[k]) for row in collected]) for k in range(len(collected[0])))]

    def _do_run_scoped(self, equation: Any, given: list[Any]) -> list[Any]:
        jaxpr = equation.params["jaxpr"]
        scratch = [scratch_reference(one.aval, f"scratch {k}") for k, one in enumerate(jaxpr.invars)]
        return self.run(jaxpr, given, scratch)

    def _read(self, equation: Any, reference: Reference, leaves: Sequence[Any]) -> Any:
        block = indices_of(self._transforms(equation, leaves), reference.shape)
        self._watch("load", reference, block, equation)
        places, _ = reference.places(block)
        return np.asarray(reference.whole.data[places])

    def _write(self, equation: Any, reference: Reference, leaves: Sequence[Any], value: Any) -> None:
        block = indices_of(self._transforms(equation, leaves), reference.shape)
        self._watch("store", reference, block, equation)
        places, inside = reference.places(block)
        content = np.broadcast_to(np.asarray(value, reference.whole.data.dtype), inside.shape)
        reference.whole.data[tuple(one[inside] for one in places)] = content[inside]
        reference.whole.is_written[tuple(one[inside] for one in places)] = True

    @staticmethod
    def _transforms(equation: Any, leaves: Sequence[Any]) -> Any:
        import jax

        return jax.tree_util.tree_unflatten(equation.params["tree"], leaves)


@lru_cache(maxsize=256)
def _used(jaxpr: Any) -> frozenset[Any]:
    """Variables that something looks at."""
    looked = [one for equation in jaxpr.eqns for one in equation.invars] + list(jaxpr.outvars)
    return frozenset(one for one in looked if not hasattr(one, "val"))


def scratch_reference(aval: Any, name: str) -> Reference:
    """Memory of one program, which nobody has written."""
    inner = getattr(aval, "inner_aval", aval)
    data = np.zeros(inner.shape, inner.dtype)
    whole = Whole(name, data, np.zeros(inner.shape, bool))
    return Reference(whole, (0,) * data.ndim, data.shape, tuple(range(data.ndim)))
