"""The warpgroups of a block of a Mosaic GPU kernel: they execute one jaxpr, and wait for each other at barriers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bragg.debug.faults import RuntimeFault, Unsupported
from bragg.debug.flow.turns import Turns, Workers
from bragg.debug.pallas.copies import Copies
from bragg.debug.pallas.evaluation import Evaluation, scratch_reference
from bragg.debug.pallas.flights import Barrier, Flight, Flights, Places
from bragg.debug.pallas.references import Reference, Whole, indices_of
from bragg.debug.pallas.watching import Watcher
from bragg.debug.state import Listeners, Machine, use
from bragg.model.table import Array

_HINT = "See docs/guides/debugging.md for what is"
_WAITS = {
    "copy_gmem_to_smem": "Wait for its barrier before: plgpu.barrier_wait(barrier)",
    "copy_smem_to_gmem": "Wait for it before: plgpu.wait_smem_to_gmem(0)",
    "wgmma": "Wait for it before: plgpu.wgmma_wait(0)",
}
_COMMIT = "Call plgpu.commit_smem() after the stores, and before what is started"


class Block:
    """One block: its shared memory, and what runs beside its warpgroups.

    Args:
        watcher: Of the call.
        axes: Number of the block along each named axis of the grid and of the cluster.
        warpgroups: How many there are.
        thread_name: The axis that numbers them; None: there is none.
    """

    def __init__(self, watcher: Watcher, axes: Mapping[Any, int], warpgroups: int, thread_name: Any) -> None:
        self.watcher, self.axes, self.thread_name = watcher, axes, thread_name
        self.flights = Flights()
        self.shared: dict[int, Whole] = {}
        self.barriers: dict[tuple[int, ...], Barrier] = {}
        self.n_arrivals: dict[int, int] = {}
        self.n_events = 0
        self._n_warpgroups = warpgroups
        self._allocated: dict[tuple[int, int], list[Reference]] = {}
        self._turn: Callable[[], None] | None = None
        self._turns: list[Turns] = []
        self._waiting: dict[int, tuple[Barrier, Any]] = {}

    def run(self, jaxpr: Any, arguments: Sequence[Any]) -> None:
        """Execute a jaxpr by all warpgroups.

        Raises:
            KernelFault: All of them wait.
        """
        if self._n_warpgroups == 1:
            _Warpgroup(self, 0).run(jaxpr, (), arguments)
        else:
            self._run_in_turns(jaxpr, arguments)
        self.end()

    def end(self) -> None:
        """The kernel ends: nothing may be under way."""
        for flight in self.flights.left():
            message = f"the kernel ends before {flight.what} was waited for"
            self._tell("missing-wait", flight.equation, flight.target, message, _WAITS[flight.what])
            self.flights.finish(flight)

    def _run_in_turns(self, jaxpr: Any, arguments: Sequence[Any]) -> None:
        workers = Workers()
        self._turns = [
            Turns(
                Machine((1, 1, 1), np.array([number]), Listeners()),
                lambda number=number: _Warpgroup(self, number).run(jaxpr, (), arguments),  # type: ignore[misc]
                workers,
            )
            for number in range(self._n_warpgroups)
        ]
        try:
            while running := [one for one in self._turns if not one.is_done]:
                before = self.n_events
                for one in running:
                    one.resume()
                    if one.error is not None:
                        raise one.error
                if before == self.n_events and not any(one.is_done for one in running):
                    raise self._deadlock()
        finally:
            for one in self._turns:
                one.cancel()
            workers.end()
            use(None)

    def evaluation(self, ids: tuple[int, ...], grid: tuple[int, ...]) -> Evaluation:
        """What executes jaxprs for a block of one warpgroup: a program of a `pallas_call` at its place in the grid."""
        return _Warpgroup(self, 0, ids, grid)

    def memory(self, aval: Any, name: str) -> Reference:
        """Memory of one type; of barriers the block knows how many arrivals they expect.

        Raises:
            Unsupported: The engine does not have it.
        """
        kind = type(aval).__name__
        if kind == "AbstractRefUnion":
            raise Unsupported("RefUnion of a Mosaic GPU kernel is not supported", hint="Allocate each by itself")
        reference = scratch_reference(aval, name)
        whole, dtype = reference.whole, aval.inner_aval.dtype
        if type(dtype).__name__ == "BarrierType":
            self.n_arrivals[id(whole)] = dtype.num_arrivals
        elif type(dtype).__name__.endswith("BarrierType"):
            raise Unsupported("ClusterBarrier of a Mosaic GPU kernel is not supported", hint=_HINT)
        if str(aval.memory_space) == "smem":
            self.shared[id(whole)] = whole
        elif _is_accumulator(aval):  # It begins at 0.
            whole.is_written[...] = True
        return reference

    def allocation(self, equation: Any, count: int, make: Callable[[], list[Reference]]) -> list[Reference]:
        """Memory that all warpgroups get where they execute an equation for the same time."""
        return self._allocated.setdefault((id(equation), count), []) or self._keep(equation, count, make())

    def _keep(self, equation: Any, count: int, made: list[Reference]) -> list[Reference]:
        self._allocated[id(equation), count] = made
        return made

    def wait(self, barrier: Barrier, warpgroup: int, equation: Any) -> None:
        """A warpgroup waits for a phase.

        Raises:
            KernelFault: The phase cannot end.
        """
        while not barrier.is_complete(warpgroup):
            self._waiting[warpgroup] = barrier, equation
            if not self._turns:
                raise self._deadlock()
            turn = self._turns[warpgroup].machine.turn
            assert turn is not None
            turn()
        self._waiting.pop(warpgroup, None)
        self.n_events += 1
        for flight in barrier.pass_by(warpgroup):
            self.flights.finish(flight)

    def _deadlock(self) -> RuntimeFault:
        told = []
        for number, (barrier, equation) in sorted(self._waiting.items()):
            line = self.watcher.place(equation)[1]
            who = f"warpgroup {number} waits" if self._n_warpgroups > 1 else "it waits"
            told.append(f"{who} in line {line} for {barrier}")
        fault = RuntimeFault(f"deadlock: {'; '.join(told)}", hint="Let as many arrive as the barrier expects")
        first = next(iter(self._waiting.values()), None)
        if first is not None:
            fault.place(self.watcher.kernel, *self.watcher.place(first[1]))
        return fault

    def look(self, kind: str, reference: Reference, block: tuple[Array, ...], lanes: Any, equation: Any) -> None:
        """An access of a warpgroup is about to happen; `block` holds int64 indices of its shape, see `Evaluation`."""
        self.watcher.see(kind, reference, block, lanes, equation)
        whole = reference.whole
        if not self.flights.left():
            return
        places = elements(reference, block, lanes)
        verb = "written" if kind in ("store", "atomic") else "read"
        self._tell_flight(self.flights.writer_of(whole, places), whole, f"{verb} before", "is over", equation)
        if verb == "written":
            self._tell_flight(self.flights.reader_of(whole, places), whole, "written while", "reads it", equation)

    def start(self, flight: Flight) -> None:
        """A copy or a product is under way."""
        own = flight.equation
        if flight.writes is not None:
            overwritten = self.flights.reader_of(flight.target, flight.writes)
            self._tell_flight(overwritten, flight.target, f"written by {flight.what} while", "reads it", own)
        for whole, places in flight.source:
            if not self.flights.is_committed(whole, places):
                message = f"{flight.what} reads stores to {whole.name} that commit_smem has not made visible to it"
                self._tell("missing-barrier", own, whole, message, _COMMIT)
            arriving = self.flights.writer_of(whole, places)
            self._tell_flight(arriving, whole, f"read by {flight.what} before", "is over", own)
        self.flights.start(flight)

    def _tell_flight(self, flight: Flight | None, whole: Whole, verb: str, what: str, equation: Any) -> None:
        if flight is not None:
            line = self.watcher.place(flight.equation)[1]
            message = f"{whole.name} is {verb} {flight.what} of line {line} {what}"
            self._tell("missing-wait", equation, whole, message, _WAITS[flight.what])

    def _tell(self, rule: str, equation: Any, whole: Whole, message: str, hint: str) -> None:
        self.watcher.tell(rule, self.watcher.place(equation), whole, np.ones(1, bool), message, hint)


def elements(reference: Reference, block: tuple[Array, ...], lanes: Any = True) -> Places:
    """The elements of an array that an access reaches, int64 [elements] for each axis; those outside are left out.

    Args:
        reference: Through which it goes.
        block: Its indices for each axis: int64 of one shape.
        lanes: Which of them are on: bool of that shape.
    """
    places, inside = reference.places(block)
    chosen = inside & lanes
    return tuple(one[chosen] for one in places)


class _Warpgroup(Evaluation):
    """One warpgroup.

    Args:
        block: That it belongs to.
        number: Of the warpgroup.
        ids: Place of the block in a grid without names.
        grid: Blocks along each of its axes.
    """

    def __init__(self, block: Block, number: int, ids: tuple[int, ...] = (), grid: tuple[int, ...] = ()) -> None:
        super().__init__(ids, grid, block.look, Copies())
        self._block, self._number = block, number
        self._loads: list[Flight | None] = []  # That no barrier waits for.
        self._counts: defaultdict[int, int] = defaultdict(int)

    def _do_axis_index(self, equation: Any, _given: list[Any]) -> list[Any]:
        name = equation.params["axis_name"]
        if name == self._block.thread_name:
            return [np.int32(self._number)]
        if name not in self._block.axes:
            raise Unsupported(f"the axis {name} of a Mosaic GPU kernel is not supported", hint=_HINT)
        return [np.int32(self._block.axes[name])]

    def _do_run_scoped(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        jaxpr, axes = params["jaxpr"], params["collective_axes"]
        self._counts[id(equation)] += 1

        def make() -> list[Reference]:
            return self._allocated(jaxpr, params.get("ref_transforms") or ((),) * len(jaxpr.invars))

        is_shared = self._block.thread_name is not None and self._block.thread_name in axes
        count = self._counts[id(equation)]
        scratch = self._block.allocation(equation, count, make) if is_shared else make()
        return self.run(jaxpr, given, scratch)

    def _do_run_state(self, equation: Any, given: list[Any]) -> list[Any]:
        results = super()._do_run_state(equation, given)
        if any(map(_is_accumulator, (one.aval for one in equation.params["jaxpr"].invars))):
            self._wait_for_products(0)  # Accumulators become values.
        return results

    def _allocated(self, jaxpr: Any, transforms: Sequence[Any]) -> list[Reference]:
        names = list(jaxpr.debug_info.arg_names or ())[-len(jaxpr.invars) :] if jaxpr.invars else []
        made = []
        for k, (variable, own) in enumerate(zip(jaxpr.invars, transforms, strict=True)):
            name = str(names[k]) if k < len(names) and names[k] else f"scratch {k}"
            made.append(self._block.memory(_logical(variable.aval, own), name))
        return made

    def _write_block(self, equation: Any, reference: Reference, transforms: Any, value: Any, mask: Any = None) -> None:
        super()._write_block(equation, reference, transforms, value, mask)
        if id(reference.whole) in self._block.shared:
            block = indices_of(transforms, reference.shape)
            chosen = True if mask is None else np.asarray(mask)
            self._block.flights.note_store(reference.whole, elements(reference, block, chosen), self._number)

    def _do_load(self, equation: Any, given: list[Any]) -> list[Any]:
        return [self._read(equation, given[0], given[1:])]

    def _do_copy_gmem_to_smem(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        self._refuse_clusters(equation)
        has_barrier = params.get("has_barrier", True)  # Since JAX 0.11 there are copies without, in order.
        source, target, *leaves = given
        barrier = leaves.pop(0) if has_barrier else None
        if params.get("has_user_predicate") and not bool(leaves.pop()):
            return []
        trees = [params[f"{one}_transforms_treedef"] for one in ("src", "dst", "barrier")]
        of_source, of_target, of_barrier = _split(leaves, trees)
        flight = self._copy(equation, (source, of_source), (target, of_target), [])
        arriving = self._loads if barrier is None else self._barrier(barrier, of_barrier).arrivals
        arriving.append(flight)
        self._block.start(flight)
        self._block.n_events += 1
        return []

    def _do_wait_gmem_to_smem(self, equation: Any, _given: list[Any]) -> list[Any]:
        while len(self._loads) > _most_left(equation, []):
            flight = self._loads.pop(0)
            assert flight is not None
            self._block.flights.finish(flight)
        return []

    def _do_mma(self, _equation: Any, given: list[Any]) -> list[Any]:
        total, left, right = map(np.asarray, given)
        return [total + _product(left, right).astype(total.dtype)]

    def _do_copy_smem_to_gmem(self, equation: Any, given: list[Any]) -> list[Any]:
        params = equation.params
        if params.get("reduction_op") is not None:
            raise Unsupported("copy_smem_to_gmem with reduction_op is not supported", hint=_HINT)
        source, target, *leaves = given
        if params["has_user_predicate"] and not bool(leaves.pop()):
            return []
        of_source, of_target = _split(leaves, [params[f"{one}_transforms_treedef"] for one in ("src", "dst")])
        read = [(source.whole, elements(source, indices_of(of_source, source.shape)))]
        flight = self._copy(equation, (source, of_source), (target, of_target), read)
        self._block.start(flight)
        self._block.flights.groups[self._number][-1].append(flight)
        return self._do_commit_group(equation, []) if params["commit_group"] else []

    def _copy(
        self,
        equation: Any,
        source: tuple[Reference, Any],
        target: tuple[Reference, Any],
        read: list[tuple[Whole, Places]],
    ) -> Flight:
        """A copy in whole blocks: what lies outside of the source is 0, and what lies outside of the target is lost."""
        (one, of_source), (other, of_target) = source, target

        def finish() -> None:
            from_block, to_block = indices_of(of_source, one.shape), indices_of(of_target, other.shape)
            places, inside = one.places(from_block)
            self._block.watcher.see("load", one, from_block, inside, equation)
            content = np.where(inside, one.whole.data[places], np.zeros((), one.whole.data.dtype))
            goes, fits = other.places(to_block)
            self._block.watcher.see("store", other, to_block, fits, equation)
            content = content.reshape(fits.shape)
            other.whole.data[tuple(axis[fits] for axis in goes)] = content[fits]
            other.whole.is_written[tuple(axis[fits] for axis in goes)] = True

        writes = elements(other, indices_of(of_target, other.shape))
        return Flight(equation, equation.primitive.name, other.whole, writes, read, finish)

    def _do_commit_group(self, _equation: Any, _given: list[Any]) -> list[Any]:
        groups = self._block.flights.groups[self._number]
        if groups[-1]:
            groups.append([])
        return []

    def _do_wait_smem_to_gmem(self, equation: Any, given: list[Any]) -> list[Any]:
        groups = self._block.flights.groups[self._number]
        while len(groups) - 1 > _most_left(equation, given):
            for flight in groups.pop(0):
                self._block.flights.finish(flight)
        return []

    def _do_commit_smem(self, _equation: Any, _given: list[Any]) -> list[Any]:
        self._block.flights.commit_stores(self._number)
        return []

    def _do_barrier_arrive(self, equation: Any, given: list[Any]) -> list[Any]:
        reference, *leaves = given
        (transforms,) = _split(leaves, [tree := equation.params["transforms_treedef"]])
        if not all(map(bool, leaves[tree.num_leaves :])):  # Since JAX 0.11 it may have a predicate.
            return []
        self._barrier(reference, transforms).arrivals.append(None)
        self._block.n_events += 1
        return []

    def _do_barrier_wait(self, equation: Any, given: list[Any]) -> list[Any]:
        barrier = self._barrier(given[0], equation.params["transforms_treedef"].unflatten(given[1:]))
        self._block.wait(barrier, self._number, equation)
        return []

    def _barrier(self, reference: Reference, transforms: Any) -> Barrier:
        block = indices_of(transforms, reference.shape)
        place = tuple(int(np.ravel(one)[0]) for one in block)
        key = (id(reference.whole), *place)
        if key not in self._block.barriers:
            is_one = reference.whole.data.size == 1
            name = reference.whole.name if is_one else f"{reference.whole.name}[{', '.join(map(str, place))}]"
            self._block.barriers[key] = Barrier(name, self._block.n_arrivals[id(reference.whole)])
        return self._block.barriers[key]

    def _do_wgmma_ref(self, equation: Any, given: list[Any]) -> list[Any]:
        trees = [equation.params[f"{one}_transforms_tree"] for one in ("acc", "a", "b")]
        whole, *operands = given[:3]
        of_acc, *others = _split(given[3:], trees)
        values, read = [], []
        for one, transforms in zip(operands, others, strict=True):
            if isinstance(one, Reference):
                read.append((one.whole, elements(one, indices_of(transforms, one.shape))))
                values.append(self._read_block(equation, one, transforms))
            else:
                values.append(np.asarray(one))
        places = elements(whole, indices_of(of_acc, whole.shape))
        data = whole.whole.data
        data[places] += _product(*values).ravel().astype(data.dtype)
        flight = Flight(equation, "wgmma", whole.whole, None, read, lambda: None)
        self._block.start(flight)
        self._block.flights.products[self._number].append(flight)
        return []

    def _do_wgmma_wait(self, equation: Any, given: list[Any]) -> list[Any]:
        self._wait_for_products(_most_left(equation, given))
        return []

    def _wait_for_products(self, count: int) -> None:
        products = self._block.flights.products[self._number]
        while len(products) > count:
            self._block.flights.finish(products.popleft())

    def _do_wgmma_accumulator_deref_p(self, equation: Any, given: list[Any]) -> list[Any]:
        if equation.params["wait_n"] is not None:
            self._wait_for_products(equation.params["wait_n"])
        return [given[0].whole.data.copy()]

    def _do_wgmma_accumulator_store_p(self, _equation: Any, given: list[Any]) -> list[Any]:
        given[0].whole.data[...] = np.asarray(given[1])
        return [given[0].whole.data.copy()]

    def _do_layout_cast(self, _equation: Any, given: list[Any]) -> list[Any]:
        return given

    def _do_set_max_registers_p(self, _equation: Any, _given: list[Any]) -> list[Any]:
        return []

    _do_print_layout = _do_async_prefetch = _do_set_max_registers_p

    @staticmethod
    def _refuse_clusters(equation: Any) -> None:
        for name in ("collective_axes", "leader_tracked"):
            if equation.params.get(name):
                raise Unsupported(f"{equation.primitive.name} with {name} is not supported", hint=_HINT)


def _most_left(equation: Any, given: Sequence[Any]) -> int:
    """How much a wait leaves under way: a parameter since JAX 0.11, before that an operand."""
    return int(equation.params["n"] if "n" in equation.params else given[0])


def _product(left: Array, right: Array) -> Array:
    """Of matrices [m, k] and [k, n] of narrow numbers, in float32 or int32: [m, n]."""
    wide = np.int32 if left.dtype.kind in "iub" else np.result_type(left.dtype, np.float32)
    product: Array = left.astype(wide) @ right.astype(wide)
    return product


def _is_accumulator(aval: Any) -> bool:
    return type(aval).__name__ == "WGMMAAbstractAccumulatorRef"


def _split(leaves: Sequence[Any], trees: Sequence[Any]) -> list[Any]:
    """What several trees hold, one after the other; a tree that is None holds nothing."""
    result, rest = [], list(leaves)
    for tree in trees:
        count = 0 if tree is None else tree.num_leaves
        result.append(() if tree is None else tree.unflatten(rest[:count]))
        rest = rest[count:]
    return result


def _logical(aval: Any, transforms: Any) -> Any:
    """The type of memory as the kernel indexes it: tiles and swizzles say how it lies there."""
    if not transforms:
        return aval
    from jax._src.state.types import TransformedRef

    return TransformedRef(aval, tuple(transforms)).type
