"""Which part of what an HLO module computes is used by something: at most so much, as sizes tell.

(h @ w)[:, -1]         one row of each matrix of h is of use
scan(...)[1][-1]       of what turns write to, the last counts, one of all
conv(h)[:, 8:24]       of an image the rows that are kept, and those around them
jacrev(f)(x)[i, i]     of all pairs those on the diagonal
permutation(key, n)[:k]    n rows are put in a random order, by several sorts, for k of them
"""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import CROPPED, MOSTLY_UNUSED, PART_OF_SHUFFLE
from bragg.grouping.hlo_program import NOWHERE, HloState
from bragg.record.hooks.jax.hlo.flow import PARTS
from bragg.record.hooks.jax.hlo.jacobians import place_of_jacobian
from bragg.record.hooks.jax.hlo.shares import (
    ELEMENTWISE,
    Share,
    is_convolution,
    is_decomposition,
    share_of_operand,
    whole,
)
from bragg.record.hooks.jax.hlo.zeros import nonzero_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo.places import Places


_SMALL_PART, _CROPPED = 0.25, 0.6
_LEAST_ELEMENTS = 1 << 10
# Of these a part can be computed alone, or something cheaper can.
_SEPARABLE = frozenset({"dot", "convolution", "reduce", "gather", "select", "dynamic-update-slice", "sort", "fft"})
_NO_WORK = frozenset({"parameter", "constant", "iota", "broadcast", "tuple", "slice", "dynamic-slice"})
_ORDER = frozenset({"reshape", "transpose", "convert", "bitcast-convert", "concatenate", "pad"})
_LARGEST = re.compile(r'op_name="(?:[^"]*/)?(?:top_k|approx_top_k)"')  # XLA sorts for these; no more was asked for
_SHUFFLES = re.compile(r'op_name="[^"]*\b_?shuffle\b')
_SORTS = re.compile(r"\bsort\(|RadixSort|cub_sort")  # on GPUs a call of a library


def unused_states(module: HloModule, entry: HloGraph, turns: Iterable[HloGraph], places: Places) -> dict[str, HloState]:
    """States by name of operation, of what makes large arrays of which little is used."""
    bodies = {graph.computation: graph for graph in turns}
    found: dict[str, HloState] = {}
    waiting: list[tuple[HloGraph, dict[int, Share], str]] = [(entry, {}, "")]
    while waiting:
        graph, outside, loop = waiting.pop()
        demand = _Demand(graph, outside) if _takes_parts(graph) or outside else None
        for value in demand.mostly_unused() if demand else ():
            is_output = value.made.code == "dynamic-update-slice" and loop
            lines = [loop] if is_output else [value.made.line, value.executed.line]
            place = place_of_jacobian(value.made.line)
            place = place if place != NOWHERE else places.nearest(lines)
            found |= dict.fromkeys(module.run_by([value.executed]), HloState(MOSTLY_UNUSED, place))
        for value in demand.cropped() if demand else ():
            place = places.nearest([value.made.line, value.executed.line])
            found |= dict.fromkeys(module.run_by([value.executed]), HloState(CROPPED, place))
        for value in graph.values:
            body = bodies.pop(value.made.called, None) if value.made.code == "while" else None
            if body:
                waiting.append((body, demand.of_elements(value) if demand else {}, value.made.line))
    return found


def shuffle_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, of random orders of which a small part is used."""
    shuffled = [each for each in graph.values if "shuffle" in each.made.line and _SHUFFLES.search(each.made.line)]
    sorts = [each for each in shuffled if _SORTS.search(each.made.line) and each.made.size >= _LEAST_ELEMENTS]
    if not sorts:
        return {}
    own = {each.made for each in shuffled}
    last = [each for each in sorts if any(user.made not in own for user in graph.users(each))]
    if not last or not all(_is_taken_in_part(graph, each) for each in last):
        return {}
    place = places.nearest([each.made.line for each in reversed(sorts)])
    large = (each.executed.name for each in shuffled if each.size >= _LEAST_ELEMENTS)
    return dict.fromkeys(large, HloState(PART_OF_SHUFFLE, place))


def _is_taken_in_part(graph: HloGraph, value: Value) -> bool:
    """Whether all that is done with a value takes small parts of it."""
    results = {(each.made, each.executed) for each in graph.results}
    waiting, taken = [value], 0
    while waiting:
        each = waiting.pop()
        if (each.made, each.executed) in results:
            return False
        for user in graph.users(each):
            if user.made.code in _ORDER:
                waiting.append(user)
            elif user.made.code not in PARTS or user.operands[0].made is not each.made:
                return False
            else:
                taken += user.size
    return 0 < taken <= _SMALL_PART * value.made.size


def _takes_parts(graph: HloGraph) -> bool:
    """Whether anything takes a small part of what something else has computed, or may do so."""
    return any(
        _takes_part(value) if value.made.code in PARTS else _is_mostly_zero(value) or is_decomposition(value)
        for value in graph.values
    )


def _takes_part(value: Value) -> bool:
    operand = value.operands[0] if value.operands else value
    is_part = operand.size >= _LEAST_ELEMENTS and value.size <= _CROPPED * operand.size
    return is_part and operand.plain.made.code not in ("parameter", "constant", "iota")


def _is_mostly_zero(value: Value) -> bool:
    is_made_so = value.made.code in ("compare", "scatter") and value.size >= _LEAST_ELEMENTS
    return is_made_so and nonzero_part(value) <= _SMALL_PART


class _Demand:
    """Shares of the values of a computation that are used.

    Args:
        graph: The values.
        outside: Of a loop, those of its results that what comes after it uses.
    """

    def __init__(self, graph: HloGraph, outside: dict[int, Share]) -> None:
        self._graph = graph
        self._used: dict[tuple[Instruction, Instruction, int], Share] = {}
        self._beyond: dict[Instruction, float] = {}  # used by others than what it is fused with
        kept = self._kept(outside)
        written = {graph.results[at] for at in kept}
        for at, result in enumerate(graph.results):
            self._use(result, kept.get(at) or whole(result), None)
        for value in reversed(graph.values):
            self._follow(value, is_output=value in written)

    def _follow(self, value: Value, *, is_output: bool) -> None:
        """Use what a value is computed from as far as it is used itself."""
        result = value if value.shape or value.made.code == "tuple" else value.part(0)
        used = (self._used.get((value.made, value.executed, element)) for element in (result.element, -1))
        if share := next((each for each in used if each), None):
            for at, operand in enumerate(value.operands):
                is_of_turn = is_output and at == 1
                self._use(operand, share if is_of_turn else share_of_operand(result, at, share), value)

    def of_elements(self, value: Value) -> dict[int, Share]:
        """Shares of the elements of a tuple that are not used as a whole."""
        shares = {at: self._used.get((value.made, value.executed, at)) for at in range(len(value.made.sizes))}
        return {at: share for at, share in shares.items() if share and share.part <= _SMALL_PART}

    def mostly_unused(self) -> list[Value]:
        """Values that are written to memory, of which little is used; the last of what is fused."""
        found: dict[Instruction, Value] = {}
        others: set[Instruction] = set()
        for value in self._graph.values:
            if _is_separable(value):
                found[value.executed] = value
            elif value.made.code not in _NO_WORK | _ORDER:
                others.add(value.executed)
        return [value for executed, value in found.items() if executed not in others and self._is_unused(value)]

    def cropped(self) -> list[Value]:
        """Products and convolutions of which about half is used."""
        long = [each for each in self._graph.values if each.made.is_product or is_convolution(each)]
        parts = ((each, self._beyond.get(each.executed, 0.0)) for each in long if each.made.size >= _LEAST_ELEMENTS)
        return [each for each, part in parts if _SMALL_PART < part <= _CROPPED]

    def _is_unused(self, value: Value) -> bool:
        part = self._part_of_values(value) if is_decomposition(value) else None
        part = self._beyond.get(value.executed, 0.0) if part is None else part
        if value.made.size < _LEAST_ELEMENTS or not 0 < part <= _SMALL_PART:
            return False
        is_sort = value.made.code == "sort"  # to which XLA gives no name
        around = [value.made, value.executed, *(each.made for each in self._graph.users(value))] if is_sort else []
        return not any(_LARGEST.search(each.line) for each in around)

    def _part_of_values(self, value: Value) -> float | None:
        """Which part of the values of a decomposition is used, if no vectors are; None: some are."""
        ranks = [len(each) for each in value.made.sizes]
        matrix = max(ranks, default=0)
        used = {at: self._used.get((value.made, value.executed, at)) for at in range(len(ranks))}
        if any(share and ranks[at] == matrix for at, share in used.items()):
            return None
        return max((share.part for at, share in used.items() if share and ranks[at] == matrix - 1), default=0.0)

    def _kept(self, outside: dict[int, Share]) -> dict[int, Share]:
        """Outputs of a loop that its turns only write to, of which little is used afterwards."""
        kept = {}
        for at, result in enumerate(self._graph.results):
            given = self._graph.given.get(at) if at in outside else None
            users = [each for each in self._graph.users(given) if given in each.operands] if given else []
            if users == [result] and result.made.code == "dynamic-update-slice" and result.operands[0] is given:
                kept[at] = outside[at]
        return kept

    def _use(self, value: Value, share: Share, user: Value | None) -> None:
        for element in {-1, value.element}:
            key = (value.made, value.executed, element)
            known = self._used.get(key)
            self._used[key] = known.joined(share) if known and known.part < 1 else known or share
        if user is None or user.executed is not value.executed:
            part = share.part * _of_first(value)
            self._beyond[value.executed] = self._beyond.get(value.executed, 0.0) + part


def _of_first(value: Value) -> float:
    """Of what a library computes its size, as a share of the first array: values, or a flag, beside vectors."""
    return value.size / value.made.size if value.made.code == "custom-call" and value.made.size else 1.0


def _is_separable(value: Value) -> bool:
    if value.made.code == "custom-call":
        return value.made.is_product or is_decomposition(value)
    return value.made.code in _SEPARABLE or value.made.code in ELEMENTWISE
