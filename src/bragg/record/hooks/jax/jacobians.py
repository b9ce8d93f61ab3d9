"""Jacobians: a pass for each output in reverse mode, or for each input in forward mode, all as one batch.

How many there are of either no name of an operation tells, so what computes a Jacobian gets a scope while it is traced.
"""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from itertools import count
from typing import NamedTuple

from bragg.record.hooks.jax.lines import leave_out, line_of_program
from bragg.record.hooks.methods import wrap
from bragg.record.inside.notes import guarded, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


_IS_REVERSE = {"jacfwd": False, "jacrev": True}


class Jacobian(NamedTuple):
    """A Jacobian that a program computes.

    Attributes:
        is_reverse: Whether it is computed in reverse mode.
        place: File and line that ask for it, with a colon.
        n_passes: Its outputs in reverse mode, its inputs in forward mode.
        n_others: The other ones.
    """

    is_reverse: bool
    place: str
    n_passes: int
    n_others: int


JACOBIANS: dict[str, Jacobian] = {}
"""By number of the scope."""


class _Open(ExitStack):
    """The scope of a Jacobian, which begins when its inputs or outputs are known."""

    number, n_passes = "", 0


_numbers = count()
_open: list[_Open] = []  # inner ones last


def mark_jacobians(api: ModuleType) -> Callable[[], None] | None:
    """Put the passes of each Jacobian into a scope.

    Returns:
        What undoes it; None when this JAX computes Jacobians otherwise.
    """
    public = sys.modules.get("jax")
    if not all(hasattr(api, name) for name in (*_IS_REVERSE, "_std_basis")):
        note(
            f"JAX {getattr(public, '__version__', '')} computes Jacobians in an unknown way: their modes are not judged"
        )
        return None
    leave_out(__file__)
    undo = [wrap(api, "_std_basis", _begins_scope)]
    for name, is_reverse in _IS_REVERSE.items():
        make = getattr(api, name)
        holders = [holder for holder in (api, public) if getattr(holder, name, None) is make]
        undo += [wrap(holder, name, functools.partial(_marked, is_reverse=is_reverse)) for holder in holders]

    def undo_all() -> None:
        for each in undo:
            each()

    return undo_all


def _begins_scope(make_basis: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What makes the basis of all passes, before they are made."""

    def make(tree: Any) -> Any:
        basis = make_basis(tree)
        if _open and not _open[-1].number:
            _begin(_open[-1], basis)
        return basis

    return make


@guarded
def _begin(scope: _Open, basis: Any) -> None:
    import jax

    from bragg.grouping.hlo_names import JACOBIAN

    scope.number, scope.n_passes = str(next(_numbers)), int(jax.tree_util.tree_leaves(basis)[0].shape[0])
    scope.enter_context(jax.named_scope(f"{JACOBIAN}{scope.number}"))


def _marked(make: Callable[..., Any], *, is_reverse: bool) -> Callable[..., Any]:
    def make_marked(*arguments: Any, **options: Any) -> Any:
        compute = make(*arguments, **options)
        place = line_of_program(sys._getframe(1))

        @functools.wraps(compute)
        def compute_marked(*arguments: Any, **options: Any) -> Any:
            with _Open() as scope:
                _open.append(scope)
                try:
                    result = compute(*arguments, **options)
                finally:
                    _open.remove(scope)
            _keep(scope, is_reverse, place, result)
            return result

        return compute_marked

    return make_marked


@guarded
def _keep(scope: _Open, is_reverse: bool, place: str, result: Any) -> None:
    import jax

    size = sum(leaf.size for leaf in jax.tree_util.tree_leaves(result))
    if scope.number and scope.n_passes:
        JACOBIANS[scope.number] = Jacobian(is_reverse, place, scope.n_passes, size // scope.n_passes)


HOOK = ("jax._src.api", mark_jacobians)
"""The module of JAX, and the function that patches it."""
