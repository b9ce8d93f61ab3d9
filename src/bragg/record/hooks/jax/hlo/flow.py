"""What uses the results of instructions of an HLO module, also within what is fused."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction


# What hands on what it gets.
_SAME = frozenset({"bitcast", "reshape", "copy", "transpose", "get-tuple-element"})
PARTS = frozenset({"slice", "dynamic-slice", "gather"})
"""What takes a part of its first operand."""
_HANDED_ON = _SAME | {"convert"}
_CONSTANTS = frozenset({"constant", "iota"})
_MOST_USES = 64


class HloFlow:
    """What uses what.

    Args:
        module: The module.
    """

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._made: dict[str, dict[str, Instruction]] = {}
        self._users: dict[str, dict[str, list[Instruction]]] = {}
        self._home: dict[str, str] = {}
        self._constant: dict[tuple[str, str], bool] = {}

    def users(self, computation: str, name: str) -> list[Instruction]:
        """Instructions of a computation that use a result."""
        if computation not in self._users:
            users: dict[str, list[Instruction]] = {}
            for each in self._module.computations.get(computation, ()):
                for operand in dict.fromkeys(each.operands if each.code != "constant" else ()):
                    users.setdefault(operand, []).append(each)
            self._users[computation] = users
        return self._users[computation].get(name, [])

    def uses(self, computation: str, made: Instruction, codes: Collection[str]) -> list[Instruction]:
        """Instructions that do something with a result, each in the computation where it stands.

        Args:
            computation: Where it is made.
            made: What makes it.
            codes: Of uses that are meant.

        Returns:
            All uses; empty: one is not meant, or there are too many.
        """
        found: list[Instruction] = []
        waiting = [(computation, made)]
        seen = set[tuple[str, str]]()
        while waiting:
            home, each = waiting.pop()
            if (home, each.name) in seen:
                continue
            seen.add((home, each.name))
            users = self.users(home, each.name)
            if not users and each is not made:
                return []  # A computation returns it.
            for user in users:
                if user.code in _HANDED_ON:
                    waiting.append((home, user))
                elif user.code == "fusion":
                    positions = [at for at, operand in enumerate(user.operands) if operand == each.name]
                    inside = (self._module.parameter(user.called, at) for at in positions)
                    waiting += [(user.called, parameter) for parameter in inside if parameter]
                elif user.code not in codes or (user.code in PARTS and user.operand != each.name):
                    return []  # Of the latter it says where the part is.
                else:
                    found.append(user)
                    self._home[user.name] = home
            if len(found) + len(waiting) > _MOST_USES:
                return []
        return found

    def elements(self, computation: str, made: Instruction) -> set[int]:
        """Which arrays of a tuple are used."""
        users = self.users(computation, made.name)
        # JAX 0.11 writes "%eigh.1#0" for what takes the first.
        told = {int(each) for user in users for each in re.findall(rf"%{re.escape(made.name)}#(\d+)", user.line)}
        return told | {each.position for each in users if each.code == "get-tuple-element"}

    def made(self, computation: str, name: str) -> Instruction | None:
        """What computes a value, also within what is fused; None: it is a parameter, or not known."""
        position = 0
        for _ in range(_MOST_USES):
            each = self._of(computation, name)
            if each is None or each.code not in _SAME | {"fusion", "tuple"}:
                break
            if each.code == "fusion":
                computation, root = each.called, self._module.root(each.called)
                name = root.name if root else ""
            elif each.code == "tuple":
                name, position = ([*each.operands[position : position + 1], ""])[0], 0
            else:
                name, position = each.operand, max(each.position, position)
        else:
            return None
        if each is not None:
            self._home[each.name] = computation
        return each

    def computation_of(self, made: Instruction) -> str:
        """Where an instruction stands that `made` or `uses` has found."""
        return self._home.get(made.name, "")

    def type_of(self, computation: str, name: str) -> str:
        """Type of the elements of a value; empty: not known."""
        each = self._of(computation, name)
        return each.type if each else ""

    def shape_of(self, computation: str, name: str) -> list[int]:
        """Sizes of the dimensions of a value; empty: it is a number, or not known."""
        each = self._of(computation, name)
        return each.sizes[0] if each and each.sizes else []

    def is_constant(self, computation: str, made: Instruction) -> bool:
        """Whether a value follows from constants alone."""
        key = (computation, made.name)
        if key not in self._constant:
            self._constant[key] = False  # of what is computed from itself
            operands = [self._of(computation, name) for name in made.operands] if made.code not in _CONSTANTS else []
            self._constant[key] = made.code in _CONSTANTS or (
                made.code in _SAME | {"fusion", "broadcast"}
                and (bool(operands) or made.code == "fusion")
                and all(each is not None and self.is_constant(computation, each) for each in operands)
            )
        return self._constant[key]

    def _of(self, computation: str, name: str) -> Instruction | None:
        if computation not in self._made:
            rows = self._module.computations.get(computation, ())
            self._made[computation] = {each.name: each for each in rows}
        return self._made[computation].get(name)
