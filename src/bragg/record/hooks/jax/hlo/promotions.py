"""Operations of an HLO module in more bits, because values have met one array of more bits before.

x = table[ids] * np.sqrt(n)    f32: NumPy's numbers have a type, which Python's have not
q = x @ w    bf16        q * table    f32, the promotion        softmax(q @ k.T) @ v, @ w2    f32, which converts w2
x * taps     f32 * f64: a table of NumPy, where JAX has 64 bits, makes what follows 64 bits
"""

from __future__ import annotations

from itertools import permutations

from bragg.grouping.hlo_names import PROMOTED, PROMOTED_DOUBLE
from bragg.grouping.hlo_program import NOWHERE, HloState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bragg.record.hooks.jax.hlo.graph import HloGraph, Value
    from bragg.record.hooks.jax.hlo.places import Places


_NARROW, _WIDE = ("bf16[", "f16["), ("f32[",)
_SINGLE, _DOUBLE = ("bf16[", "f16[", "f32[", "c64["), ("f64[", "c128[")
_MEETS = frozenset({"multiply", "add", "subtract", "divide", "maximum", "minimum"})
_HANDS_ON = frozenset({"convert", "reshape", "transpose", "slice", "dynamic-slice", "broadcast", "concatenate"})
_LEAVES = frozenset({"parameter", "constant", "iota"})
_PRODUCT, _BACKWARD = ("lhs_contracting_dim", "dim_labels="), "transpose("
_LEAST_TABLE, _LEAST_PROMOTED = 32, 1 << 12
_LEAST_WEIGHTS = 2  # the last layer alone may be meant to be exact


def promotion_states(graph: HloGraph, places: Places) -> dict[str, HloState]:
    """States by name of operation, at the lines where values are promoted."""
    return _to_single(graph, places) | _to_double(graph, places)


def _to_single(graph: HloGraph, places: Places) -> dict[str, HloState]:
    if not any(each.shape.startswith(_NARROW) for each in graph.given.values()):
        return {}
    types = _Types(_NARROW, _WIDE, places)
    promoted = [(each, cause) for each in graph.values if _is_wide_product(each) and (cause := types.promotion(each))]
    forward = (each for each, _ in promoted if _BACKWARD not in each.made.line)
    if len({weight for each in forward for weight in _weights(each)}) < _LEAST_WEIGHTS:
        return {}
    return {each.executed.name: _at(cause, PROMOTED, places) for each, cause in promoted}


def _to_double(graph: HloGraph, places: Places) -> dict[str, HloState]:
    doubles = [each for each in graph.values if each.shape.startswith(_DOUBLE) and each.size >= _LEAST_PROMOTED]
    types = _Types(_SINGLE, _DOUBLE)
    promoted = ((each, types.promotion(each)) for each in doubles)
    return {each.executed.name: _at(cause, PROMOTED_DOUBLE, places) for each, cause in promoted if cause}


def _at(cause: Value, state: str, places: Places) -> HloState:
    return HloState(state, places.nearest([cause.made.line, cause.executed.line]))


def _is_product(value: Value) -> bool:
    return len(value.operands) > 1 and any(mark in value.made.line for mark in _PRODUCT)


def _is_wide_product(value: Value) -> bool:
    return _is_product(value) and all(each.shape.startswith(_WIDE) for each in value.operands[:2])


def _weights(product: Value) -> set[int]:
    """The 16-bit arguments that its factors are, converted: as bits of `sources`."""
    ends = [_chain(each)[-1] for each in product.operands[:2]]
    return {each.sources for each in ends if each.made.code == "parameter" and each.shape.startswith(_NARROW)}


def _chain(value: Value) -> list[Value]:
    """A value and what has its elements, in another order, shape or type."""
    chain = [value]
    while chain[-1].made.code in _HANDS_ON and chain[-1].operands:
        chain.append(chain[-1].operands[0])
    return chain


class _Types:
    """Where values have met others of more bits; to be asked for values in their order.

    Args:
        narrow: What shapes of the former begin with.
        wide: And those of the latter.
        places: Of operations; None: only arrays count as others, no single numbers.
    """

    def __init__(self, narrow: tuple[str, ...], wide: tuple[str, ...], places: Places | None = None) -> None:
        self._narrow, self._wide, self._places = narrow, wide, places
        self._promotions: dict[int, Value | None] = {}
        self._is_table: dict[int, bool | None] = {}

    def promotion(self, value: Value) -> Value | None:
        """The first one that a value depends on without being narrow since; None: there is none."""
        if id(value) not in self._promotions:
            self._promotions[id(value)] = self._promotion(value)
        return self._promotions[id(value)]

    def _promotion(self, value: Value) -> Value | None:
        if value.shape.startswith(self._narrow):
            return None
        before = next(filter(None, map(self.promotion, value.operands)), None)
        return before or (value if self._promotes(value) else None)

    def _promotes(self, value: Value) -> bool:
        is_meant = value.made.code in _MEETS and value.size >= _LEAST_PROMOTED
        is_wide = is_meant and value.shape.startswith(self._wide)
        is_product = _is_product(value) and all(each.shape.startswith(self._wide) for each in value.operands[:2])
        return (is_wide or is_product) and any(
            self._was_narrow(other) and self._is_wider(table, other, value)
            for table, other in permutations(value.operands[:2])
        )

    def _is_wider(self, table: Value, other: Value, met: Value) -> bool:
        """Whether it was not narrow; of numbers that is so if the other is converted at the line where they meet."""
        is_table = self._table(table)
        if is_table is not None or self._places is None:
            return is_table is True
        converted = [
            each for each in _chain(other) if each.made.code == "convert" and each.shape.startswith(self._wide)
        ]
        here = self._places.read(met.made.line).place
        return here != NOWHERE and any(self._places.read(each.made.line).place == here for each in converted)

    def _was_narrow(self, value: Value) -> bool:
        """Whether a value was narrow, or is a product of such values."""
        chain = _chain(value)
        return any(each.shape.startswith(self._narrow) for each in chain) or (
            _is_product(chain[-1]) and all(each.shape.startswith(self._narrow) for each in chain[-1].operands[:2])
        )

    def _table(self, value: Value) -> bool | None:
        """Whether a value is made from arrays without any narrow ones; None: from numbers alone."""
        if id(value) not in self._is_table:
            self._is_table[id(value)] = self._of_table(value)
        return self._is_table[id(value)]

    def _of_table(self, value: Value) -> bool | None:
        if value.shape.startswith(self._narrow):
            return False
        if value.made.code in _LEAVES:
            return value.size >= _LEAST_TABLE or None
        made = [self._table(each) for each in value.operands]
        return False if False in made else True if True in made else None
