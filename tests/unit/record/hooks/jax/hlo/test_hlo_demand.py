"""What little is used of, of programs that JAX compiles for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bragg.grouping.hlo_names import CROPPED, MOSTLY_UNUSED
from bragg.record.hooks.jax.hlo.text import operations_in

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("marked_jacobians")
np = jax.numpy
SQUARE, TOKENS = (64, 64), (16, 32, 64)


def unused(function: Callable[..., Any], *shapes: tuple[int, ...], state: str = MOSTLY_UNUSED) -> set[tuple[str, int]]:
    """Primitives of which little is used, and how many lines behind the function's first line they are."""
    given = [np.zeros(shape, "int32" if len(shape) == 1 else "float32") for shape in shapes]
    text = jax.jit(function).lower(*given).compile().as_text()
    found = operations_in(text, lambda file: file != __file__).values()
    first = function.__code__.co_firstlineno
    told = (each for each in found if each.state.name == state)
    return {(each.op_name.rpartition("/")[2], each.state.place.line - first) for each in told}


def few_rows(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    h = h / np.linalg.norm(h, axis=-1, keepdims=True)
    return (h @ w)[:32]


def few_rows_early(x: Any, w: Any) -> Any:
    h = np.tanh(x[:32] @ w)
    h = h / np.linalg.norm(h, axis=-1, keepdims=True)
    return h @ w


def last_query(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(q @ k.mT)
    return (weights @ v)[:, -1]


def every_key(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(q[:, -1:] @ k.mT)
    return weights @ v


def own_gradients(x: Any) -> Any:
    pairs = jax.vmap(lambda row: np.tanh(np.outer(row, row)).sum())
    own = np.arange(x.shape[0])
    return jax.jacrev(pairs)(x)[own, own]


def gradients(x: Any) -> Any:
    pairs = jax.vmap(jax.grad(lambda row: np.tanh(np.outer(row, row)).sum()))
    return pairs(x)


@pytest.mark.parametrize(
    ("function", "shapes", "lines"),
    [
        (few_rows, [(1024, 64), SQUARE], {1, 2, 3}),
        (few_rows_early, [(1024, 64), SQUARE], set()),
        (last_query, [TOKENS, TOKENS, TOKENS], {1, 2}),
        (every_key, [TOKENS, TOKENS, TOKENS], set()),
        (own_gradients, [SQUARE], {3}),  # where the Jacobian is asked for
        (gradients, [SQUARE], set()),
    ],
)
def test_what_leads_to_a_part_alone_is_told_where_it_is_computed(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], lines: set[int]
) -> None:
    assert {line for _, line in unused(function, *shapes)} == lines


def cropped(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    return (h @ w)[256:768]


def parts_of_one(x: Any, w: Any) -> Any:
    q, k = np.split(x @ w, 2)
    return q.T @ k


def filtered(x: Any, w: Any) -> Any:
    taps = np.tile(w.reshape(1, 1, 64, 64)[..., :16], (5, 5, 1, 4)) @ w
    h = np.tanh(convolved(x.reshape(1, 32, 32, 64), taps))
    return convolved(h, taps)[:, 6:26, 6:26]


def convolved(x: Any, taps: Any) -> Any:
    return jax.lax.conv_general_dilated(x, taps, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@pytest.mark.parametrize(
    ("function", "lines"),
    [(cropped, {1, 2}), (parts_of_one, set()), (filtered, {convolved}), (few_rows_early, set()), (few_rows, set())],
)
def test_products_are_told_that_are_cropped_afterwards(function: Callable[..., Any], lines: set[Any]) -> None:
    first = function.__code__.co_firstlineno
    expected = {each.__code__.co_firstlineno + 1 - first if callable(each) else each for each in lines}
    assert {line for _, line in unused(function, (1024, 64), SQUARE, state=CROPPED)} == expected


def turn(state: Any, _: Any) -> Any:
    state = np.tanh(state @ state)
    return state, np.cos(state) @ state


def last_output(x: Any) -> Any:
    return jax.lax.scan(turn, x, None, length=8)[1][-1]


def all_outputs(x: Any) -> Any:
    return jax.lax.scan(turn, x, None, length=8)[1]


def last_state(x: Any) -> Any:
    return jax.lax.scan(lambda x, _: (turn(x, _)[0], None), x, None, length=8)[0]


def test_outputs_of_turns_of_which_the_last_counts_are_told_with_what_is_computed_for_them() -> None:
    in_turn = turn.__code__.co_firstlineno + 2 - last_output.__code__.co_firstlineno
    told = unused(last_output, SQUARE)
    assert ("dynamic_update_slice", 1) in told
    assert {line for _, line in told} == {1, in_turn}
    assert unused(all_outputs, SQUARE) == unused(last_state, SQUARE) == set()


def test_rows_that_are_sorted_though_few_are_taken_are_told() -> None:
    def best(scores: Any, x: Any) -> Any:
        return x[np.argsort(scores)][:10]

    def ranked(scores: Any, x: Any) -> Any:
        return x[np.argsort(scores)]

    assert unused(best, (4096,), (4096, 8)) == {("sort", 1)}
    assert unused(ranked, (4096,), (4096, 8)) == set()


def test_decompositions_of_whose_vectors_few_are_taken_are_told() -> None:
    def first_direction(x: Any) -> Any:
        return np.linalg.eigh(x @ x.T)[1][:, -1]

    def all_directions(x: Any) -> Any:
        values, vectors = np.linalg.eigh(x @ x.T)
        return values[-1] * vectors

    assert unused(first_direction, SQUARE) == {("eigh", 1)}
    assert unused(all_directions, SQUARE) == set()


def experts(x: Any, w: Any, gates: Any) -> Any:
    hidden = np.tanh(np.einsum("nd,edh->enh", x, w))
    rows = np.einsum("enh,ehd->end", hidden, w)
    return np.einsum("end,ne->nd", rows, gates)


def test_results_that_are_multiplied_with_one_hot_rows_are_told() -> None:
    def one_expert(x: Any, w: Any, chosen: Any) -> Any:
        return experts(x, w, jax.nn.one_hot(chosen, 8))

    def all_experts(x: Any, w: Any, gates: Any) -> Any:
        return experts(x, w, gates)

    line = experts.__code__.co_firstlineno + 2 - one_expert.__code__.co_firstlineno
    told = unused(one_expert, (256, 64), (8, 64, 64), (256,))
    assert ("dot_general", line) in told
    assert {at for _, at in told} == {line}
    assert unused(all_experts, (256, 64), (8, 64, 64), (256, 8)) == set()


def test_losses_by_one_hot_labels_take_all_of_the_products() -> None:
    def loss(w: Any, x: Any, labels: Any) -> Any:
        logits = jax.nn.log_softmax(x @ w)
        return -(jax.nn.one_hot(labels, 512) * logits).sum(-1).mean()

    assert not any(primitive == "dot_general" for primitive, _ in unused(jax.grad(loss), (64, 512), (256, 64), (256,)))


@pytest.mark.parametrize(
    ("function", "is_told"),
    [
        (lambda a: np.linalg.eigvalsh(a + a.T).max(), True),
        (lambda a: np.linalg.norm(a, 2), True),
        (lambda a: np.linalg.svd(a, compute_uv=False)[0], True),
        (lambda a: np.linalg.eigh(a + a.T)[1][:, -1], True),
        (lambda a: np.linalg.eigvalsh(a + a.T), False),
        (lambda a: (np.linalg.eigvalsh(a + a.T), (a @ a)[:4] @ np.ones(64)), False),
        (lambda a: np.linalg.svd(a, compute_uv=False).sum(), False),
    ],
)
def test_of_eigenvalues_and_singular_values_the_largest_alone_is_a_part(
    function: Callable[..., Any], is_told: bool
) -> None:
    text = jax.jit(function).lower(np.zeros(SQUARE)).compile().as_text()
    states = [each for each in operations_in(text, lambda _: False).values() if each.state.name == MOSTLY_UNUSED]
    assert {each.op_name.rpartition("/")[2] for each in states} & {"eigh", "svd"} == (
        {"svd" if "svd" in text else "eigh"} if is_told else set()
    )
