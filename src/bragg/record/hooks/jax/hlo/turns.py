"""Loops of an HLO module whose turns do not need each other, or do what one operation before the loop would do.

lax.map(f, xs)                        each turn keeps an output, or adds to a sum
fori_loop: x = x.at[i].set(f(x[i], y[i]))   each turn has a row of its own; h.at[ids[i]].add(v[i]) adds to one
scan: h = a * h + b                   with a and b of each turn known before: associative_scan
scan: h = tanh(x @ w + h @ u)         x @ w of all turns is one product
scan: h = concatenate([h[1:], x])     the whole array is copied to move it
"""

from __future__ import annotations

from bragg.grouping.hlo_names import INDEPENDENT_TURNS, LINEAR_TURNS, SAME_TURNS, SHIFTED, WITHOUT_STATE
from bragg.grouping.hlo_program import HloState
from bragg.record.hooks.jax.hlo.graph import LONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.module import HloModule
    from bragg.record.hooks.jax.hlo.places import Places


_MOST_GROWTH = 8  # times as large as its inputs: the products of all turns have to be kept
_LEAST_ELEMENTS, _LEAST_SHIFTED = 1 << 12, 1 << 14
_HALF = 0.5
_WITHIN_BOUNDS = frozenset(
    {"parameter", "constant", "add", "select", "compare", "clamp", "maximum", "minimum", "convert"}
)


def turn_states(module: HloModule, turns: list[HloGraph], places: Places) -> dict[str, HloState]:
    """States by name of operation, at the line of the loop; of loops in each other the outer one counts."""
    found: dict[str, HloState] = {}
    for graph in turns:
        turn = _Turn(graph)
        for state, values in ((SAME_TURNS, turn.same()), (WITHOUT_STATE, turn.apart()), (SHIFTED, turn.shifted())):
            for each in values:
                place = places.nearest([each.made.line, each.executed.line])
                found |= dict.fromkeys(module.run_by([each.executed]), HloState(state, place))
        whole = INDEPENDENT_TURNS if turn.is_independent() else LINEAR_TURNS if turn.is_linear() else ""
        if whole:
            _, loop = module.callers[graph.computation]
            state_of_all = HloState(whole, places.read(loop.line).place)
            inside = dict.fromkeys(module.run_by(module.computations[graph.computation]), state_of_all)
            found = {**inside, **found} if found.get(loop.name) else found | inside
    return found


class _Turn:
    """What a turn of a loop makes of what it is given.

    Args:
        graph: Of the body.
    """

    def __init__(self, graph: HloGraph) -> None:
        self._graph = graph
        results = dict(enumerate(graph.results))
        self._changing = {at: result for at, result in results.items() if result is not graph.given.get(at)}
        counters = {at for at, result in self._changing.items() if _is_counted(graph.given.get(at), result)}
        self._counters = sum(1 << at for at in counters)
        self._kept = [at for at in self._changing if at not in counters]
        self._state = sum(1 << at for at in self._kept)
        # What a turn needs of these it alone changes.
        own = sum(1 << at for at in self._kept if self._has_rows_of_turns(at))
        self._shared = self._state & ~own

    def same(self) -> list[Value]:
        """What is long and the same in each turn."""
        moving = self._state | self._counters
        return [each for each in self._graph.values if _is_long(each) and not each.sources & moving]

    def apart(self) -> list[Value]:
        """Products of the inputs of a turn with what is the same in all of them."""
        return [each for each in self._graph.values if each.made.is_product and self._is_apart(each)]

    def _is_apart(self, product: Value) -> bool:
        inputs = [each for each in product.operands[:2] if each.sources & self._counters]
        is_free = len(inputs) == 1 and len(product.operands) > 1 and not product.sources & self._state
        is_large = max(each.size for each in product.operands[:2]) >= _LEAST_ELEMENTS
        return is_free and is_large and product.made.size <= _MOST_GROWTH * inputs[0].size

    def shifted(self) -> list[Value]:
        """Copies of a part of what a turn is given, put at another place of what it gives to the next one."""
        found = []
        for at in self._kept:
            given, result = self._graph.given.get(at), self._changing[at].plain
            if result.made.code == "dynamic-update-slice":
                result = result.operands[0].plain
            parts = result.operands if result.made.code == "concatenate" and result.size >= _LEAST_SHIFTED else []
            if any(each.made.code == "slice" and each.operands[0] is given for each in parts):
                moved = max(each.size for each in parts if each.made.code == "slice")
                found += [result] if moved >= _HALF * result.size else []
        return found

    def is_independent(self) -> bool:
        """Whether no turn needs what another one has made."""
        return bool(self._kept and self._counters) and all(map(self._is_of_turn, self._kept))

    def is_linear(self) -> bool:
        """Whether each element of the state becomes itself times a number, plus one, which need no other turn."""
        linear = {at for at in self._kept if self._is_affine(self._changing[at], at)}
        bits = sum(1 << at for at in linear)
        is_known = all(at in linear or self._is_output(at, bits) for at in self._kept)
        return bool(linear and self._counters) and is_known

    def _is_affine(self, value: Value, at: int) -> bool:
        value = value.plain
        if not value.sources & self._state or value is self._graph.given.get(at):
            return True
        moving = [each for each in value.operands if each.sources & self._state]
        is_scaled = value.made.code == "multiply" or (value.made.code == "divide" and moving == value.operands[:1])
        is_chosen = value.made.code == "select" and value.operands[0] not in moving
        is_summed = value.made.code in ("add", "subtract", "negate") or is_chosen
        return (is_summed or (is_scaled and len(moving) == 1)) and all(self._is_affine(each, at) for each in moving)

    def _is_output(self, at: int, known: int) -> bool:
        """Whether all that a turn does with an array is to write a row, which these parts of the state tell."""
        given, result = self._graph.given.get(at), self._changing[at].plain
        is_written = result.made.code == "dynamic-update-slice" and result.operands[0].plain is given
        return is_written and not result.operands[1].sources & self._state & ~known

    def _is_of_turn(self, at: int) -> bool:
        """Whether what a turn writes to an array, or adds to it, depends on no other turn."""
        given, result = self._graph.given.get(at), self._changing[at]
        if given is None:
            return not result.sources & self._shared
        result = result.plain
        if result.made.code not in ("dynamic-update-slice", "add") or given not in [
            each.plain for each in result.operands
        ]:
            return False
        if not any(each.sources & self._shared for each in result.operands if each.plain is not given):
            return True
        reads = self._reads_of_row(given, result)
        needs_others = any(each.sources & self._shared & ~(1 << at) for each in result.operands[1:])
        return bool(reads) and not needs_others and _adds_to(result.operands[1].plain, reads)

    def _has_rows_of_turns(self, at: int) -> bool:
        """Whether all that a turn needs of an array is the row that it replaces, another one in each turn."""
        given, result = self._graph.given.get(at), self._changing[at].plain
        is_read = given is not None and bool(self._reads_of_row(given, result))
        return is_read and self._are_numbers_of_turn(result.operands[2:])

    def _reads_of_row(self, given: Value, result: Value) -> list[Value]:
        """What reads the row of an array that is replaced; none: something else of it is needed, too."""
        if result.made.code != "dynamic-update-slice" or result.operands[0].plain is not given:
            return []
        place = result.operands[2:]
        users = [each for each in self._graph.users(given) if given in each.operands and each is not result]
        reads = [each for each in users if each.made.code == "dynamic-slice" and _is_at(each.operands[1:], place)]
        has_others = any(each not in reads and each.made.code != "tuple" for each in users)
        return [] if has_others else reads

    def _are_numbers_of_turn(self, place: list[Value]) -> bool:
        """Whether a place is another one in each turn: its number, which JAX keeps within bounds."""
        waiting = list(place)
        seen: set[Value] = set()
        while waiting:
            each = waiting.pop()
            seen.add(each)
            waiting += [operand for operand in each.operands if operand not in seen]
        is_counted = any(each.sources & self._counters for each in seen)
        is_number = all(each.made.code in _WITHIN_BOUNDS and not each.sources & ~self._counters for each in seen)
        return is_counted and is_number


def _is_at(one: list[Value], other: list[Value]) -> bool:
    """Whether two places in an array are the same."""
    pairs = list(zip(one, other, strict=False))
    is_same = (a is b or (a.made.code == b.made.code == "constant" and a.kind == b.kind) for a, b in pairs)
    return len(one) == len(other) and all(is_same)


def _adds_to(row: Value, reads: list[Value]) -> bool:
    """Whether it is a row that was read and something else, which does not depend on it, or that row itself."""
    if row.made.code == "select":  # out of bounds it stays as it is
        row = next((each.plain for each in row.operands[1:] if each.plain not in reads), row)
    read = [each for each in row.operands if each.plain in reads]
    others = [each for each in row.operands if each.plain not in reads]
    bits = read[0].operands[0].sources if read else 0
    return row.made.code == "add" and len(read) == 1 and not any(each.sources & bits for each in others)


def _is_long(value: Value) -> bool:
    return value.made.code in LONG and value.is_large


def _is_counted(given: Value | None, result: Value) -> bool:
    """Whether it becomes one more in each turn."""
    return (
        given is not None and result.made.code == "add" and given in result.operands and result.sources == given.sources
    )
