"""Executes the jaxpr of a Pallas kernel for one program after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import Unsupported
from bragg.debug.memory.atomics import ATOMICS_WITH_NAN
from bragg.debug.pallas.copies import Copies, Copy
from bragg.debug.pallas.references import Reference, Whole, indices_of, whole_reference
from bragg.debug.pallas.uses import only_chosen, used
from bragg.model.table import Array

Watch = Callable[[str, Reference, tuple[Any, ...], Any, Any], None]

_HINT = "See docs/guides/debugging.md for what is"


class Evaluation:
    """One program.

    Args:
        ids: Its place in the grid.
        grid: Programs along each axis.
        watch: Called before every access with kind, reference, indices of the block, lanes that are on, equation. Kinds
            are `load`, `store`, `atomic`, and `choice`: a load for a side of a choice, as in changes of a part.
        copies: Those that are under way.
    """

    def __init__(self, ids: tuple[int, ...], grid: tuple[int, ...], watch: Watch, copies: Copies) -> None:
        self._ids, self._grid, self._watch, self._copies = ids, grid, watch, copies
        self._used: frozenset[Any] = frozenset()
        self._chosen: frozenset[Any] = frozenset()

    def run(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr."""
        values: dict[Any, Any] = {}
        for variables, given in ((jaxpr.constvars, constants), (jaxpr.invars, arguments)):
            values.update(zip(variables, given, strict=True))

        def read(one: Any) -> Any:
            return one.val if hasattr(one, "val") else values[one]

        looked_at, chosen = used(jaxpr), only_chosen(jaxpr)
        for equation in jaxpr.eqns:
            self._used, self._chosen = looked_at, chosen  # An equation may have run another jaxpr.
            results = self._execute(equation, [read(one) for one in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(one) for one in jaxpr.outvars]

    def _execute(self, equation: Any, given: list[Any]) -> Sequence[Any]:
        name = equation.primitive.name
        own = getattr(self, f"_do_{name}", None)
        if own is not None:
            return own(equation, given)  # type: ignore[no-any-return]
        if any(isinstance(one, Reference) for one in given):
            return self._call(equation, given)
        try:
            result = equation.primitive.bind(*given, **equation.params)
        except NotImplementedError:
            raise Unsupported(f"{name} of Pallas kernels is not supported", hint=_HINT) from None
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
        (n_constants, n_carried), length = _counts_of_scan(params), params["length"]
        constants, carried = given[:n_constants], given[n_constants : n_constants + n_carried]
        series = given[n_constants + n_carried :]
        collected: list[list[Any]] = []
        for step in reversed(range(length)) if params["reverse"] else range(length):
            results = self._closed(params["jaxpr"], [*constants, *carried, *(one[step] for one in series)])
            carried = results[:n_carried]
            collected.append(results[n_carried:])
        if params["reverse"]:
            collected.reverse()
        series_out = equation.outvars[n_carried:]
        if not collected:
            return [*carried, *(np.zeros(one.aval.shape, one.aval.dtype) for one in series_out)]
        return [*carried, *(np.stack([np.asarray(row[k]) for row in collected]) for k in range(len(series_out)))]

    def _do_run_scoped(self, equation: Any, given: list[Any]) -> list[Any]:
        jaxpr = equation.params["jaxpr"]
        scratch = [scratch_reference(one.aval, f"scratch {k}") for k, one in enumerate(jaxpr.invars)]
        return self.run(jaxpr, given, scratch)

    def _do_run_state(self, equation: Any, given: list[Any]) -> list[Any]:
        """Values become references while a jaxpr runs."""
        params, values = equation.params, iter(given)
        states = []
        for k, (variable, has_value) in enumerate(zip(params["jaxpr"].invars, params["is_initialized"], strict=True)):
            value = next(values) if has_value else None
            if isinstance(value, Reference):  # Of what is around it.
                states.append(value)
                continue
            state = scratch_reference(variable.aval, f"state {k}")
            if has_value:
                state.whole.data[...], state.whole.is_written[...] = np.asarray(value), True
            states.append(state)
        self.run(params["jaxpr"], (), states)
        return [one.whole.data for one in states]

    def _do_masked_load(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, transforms, mask, other = _unflattened(equation, given)
        return [self._read_block(equation, reference, transforms, mask, other)]

    def _do_masked_swap(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, transforms, value, mask = _unflattened(equation, given)
        is_read = equation.outvars[0] in self._used
        old = self._read_block(equation, reference, transforms, mask) if is_read else np.zeros((), value.dtype)
        self._write_block(equation, reference, transforms, value, mask)
        return [old]

    def _do_atomic_rmw(self, equation: Any, given: list[Any]) -> list[Any]:
        """Lanes take effect one after the other."""
        reference, transforms, value, mask = _unflattened(equation, given)
        block = indices_of(transforms, reference.shape)
        places, inside = reference.places(block)
        lanes = _lanes(mask, inside.shape)
        self._watch("atomic", reference, block, lanes, equation)
        data = reference.whole.data
        old, values = np.zeros(inside.shape, data.dtype), np.broadcast_to(np.asarray(value, data.dtype), inside.shape)
        function = ATOMICS_WITH_NAN[equation.params["atomic_type"].value]
        for lane in np.argwhere(inside & lanes):
            at = tuple(lane)
            place = tuple(one[at] for one in places)
            old[at] = data[place]
            data[place] = function(old[at], values[at])
        return [old]

    def _do_atomic_cas(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, expected, new = given
        block = indices_of((), reference.shape)
        self._watch("atomic", reference, block, np.ones((), bool), equation)
        places, _ = reference.places(block)
        old = np.array(reference.whole.data[places])
        if old == np.asarray(expected):
            reference.whole.data[places] = np.asarray(new)
        return [old]

    def _do_dma_start(self, equation: Any, given: list[Any]) -> list[Any]:
        source, target, semaphore, other, device = _unflattened(equation, given)
        if other is not None or device is not None or equation.params.get("add"):
            raise Unsupported("copies between devices and copies that add are not supported", hint=_HINT)

        def finish() -> None:
            value = self._read_block(equation, *_parts(source))
            self._write_block(equation, *_parts(target), value)

        self._copies.start(_place_of(*_parts(semaphore)), Copy(equation, _parts(target)[0].whole, finish))
        return []

    def _do_dma_wait(self, equation: Any, given: list[Any]) -> list[Any]:
        self._copies.wait(_place_of(*_parts(_unflattened(equation, given)[2])))
        return []

    def _do_semaphore_signal(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, transforms, count, device, core = _unflattened(equation, given)
        if device is not None or core is not None:
            raise Unsupported("semaphores of other devices and cores are not supported", hint=_HINT)
        self._copies.counts[_place_of(reference, transforms)] += int(count)
        return []

    def _do_semaphore_wait(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, transforms, count, *takes = _unflattened(equation, given)
        place = _place_of(reference, transforms)
        self._copies.wait_for_count(place, int(count), takes=bool(takes[0]) if takes else True)
        return []

    def _do_semaphore_read(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, transforms = _unflattened(equation, given)
        return [np.int32(self._copies.counts[_place_of(reference, transforms)])]

    def _do_multiple_of(self, _equation: Any, given: list[Any]) -> list[Any]:
        return given

    _do_max_contiguous = _do_multiple_of

    def _do_debug_barrier_p(self, _equation: Any, _given: list[Any]) -> list[Any]:
        return []

    _do_delay = _do_trace_value = _do_debug_barrier_p

    def _do_reciprocal(self, _equation: Any, given: list[Any]) -> list[Any]:
        return [np.asarray(1, given[0].dtype) / given[0]]

    def _read(self, equation: Any, reference: Reference, leaves: Sequence[Any]) -> Any:
        return self._read_block(equation, reference, _unflattened(equation, leaves))

    def _write(self, equation: Any, reference: Reference, leaves: Sequence[Any], value: Any) -> None:
        self._write_block(equation, reference, _unflattened(equation, leaves), value)

    def _read_block(
        self, equation: Any, reference: Reference, transforms: Any, mask: Any = None, other: Any = None
    ) -> Any:
        """Elements; those that a mask leaves out are `other`, or may be anything: NaN."""
        block = indices_of(transforms, reference.shape)
        places, inside = reference.places(block)
        lanes = _lanes(mask, inside.shape)
        is_choice = bool(equation.outvars) and equation.outvars[0] in self._chosen
        self._watch("choice" if is_choice else "load", reference, block, lanes, equation)
        data = np.asarray(reference.whole.data[places])
        if mask is None:
            return data
        unknown = np.nan if np.issubdtype(data.dtype, np.inexact) else 0
        return np.where(lanes, data, np.asarray(unknown if other is None else other, data.dtype))

    def _write_block(self, equation: Any, reference: Reference, transforms: Any, value: Any, mask: Any = None) -> None:
        block = indices_of(transforms, reference.shape)
        places, inside = reference.places(block)
        lanes = _lanes(mask, inside.shape)
        self._watch("store", reference, block, lanes, equation)
        content = np.broadcast_to(np.asarray(value, reference.whole.data.dtype), inside.shape)
        chosen = inside & lanes
        reference.whole.data[tuple(one[chosen] for one in places)] = content[chosen]
        reference.whole.is_written[tuple(one[chosen] for one in places)] = True


def _counts_of_scan(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many constants a scan has, and how many values that it carries."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, _ = params["ft_in"].unpack()  # Since JAX 0.11.
    return len(constants), len(carried)


def _lanes(mask: Any, shape: tuple[int, ...]) -> Array:
    """Which lanes a mask leaves on: bool of this shape."""
    return np.broadcast_to(True if mask is None else np.asarray(mask), shape)


def _unflattened(equation: Any, given: Sequence[Any]) -> Any:
    """The arguments of a primitive as its function takes them."""
    import jax

    params = equation.params
    return jax.tree_util.tree_unflatten(params["args_tree" if "args_tree" in params else "tree"], given)


def _parts(view: Any) -> tuple[Reference, Any]:
    """A reference, and how it is indexed."""
    return (view.ref, view.transforms) if hasattr(view, "transforms") else (view, ())


def _place_of(reference: Reference, transforms: Any) -> tuple[int, ...]:
    """What makes a semaphore another one than all others."""
    places, _ = reference.places(indices_of(transforms, reference.shape))
    return id(reference.whole), *(int(one) for one in places)


def scratch_reference(aval: Any, name: str) -> Reference:
    """Memory of one program, which nobody has written; of semaphores the numbers that they count."""
    inner = getattr(aval, "inner_aval", aval)
    is_semaphore = not isinstance(inner.dtype, np.dtype)
    data = np.zeros(inner.shape, np.int32 if is_semaphore else inner.dtype)
    return whole_reference(Whole(name, data, np.full(inner.shape, is_semaphore)))
