"""Call paths of XLA's operations, from the ranges that were recorded to what a reader looks for.

    jit_loss -> jit(loss)/jvp(scan)/while -> while.10 -> jit(loss)/jvp(scan)/while/body/mul -> fusion.3 -> fusion_3
    jit_loss -> scan -> while -> mul loss.py:12 -> fusion_3

A module stands for the call of its function, where that was recorded, as its compilation does. The path of its names is
the whole path of an operation below its module, wherever it was launched: also in loops, and in command buffers (XLA's
CUDA graphs), whose kernels belong to the operations that were captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bragg.grouping.hlo_names import AUTOTUNE, CALLBACK, CALLS, COMPILE, CONTROL, path_of_name, symbol_of
from bragg.grouping.hlo_program import NOWHERE, PROGRAM_KEY, HloPlace, HloPrograms
from bragg.model.profile import Profile
from bragg.model.table import BoolArray, Int32Array
from bragg.model.tree import CallTree, FrameKind, FrameTable

Attributes = Mapping[str, Mapping[str, str]]

# Attributes that say what a range of XLA is: what all names of the module below begin with and leave out, a module,
# the path of an operation's names, an operation.
_PREFIX, _MODULE, _OP_NAME, _OP = "hlo_prefix", "hlo_module", "hlo_op_name", "hlo_op"
_ROLES = frozenset({_PREFIX, _MODULE, _OP_NAME, _OP})
_PREFIX_MARK = "prefix="  # before the prefix, which may be called like a call

_CAPTURED = "<captured_at>"
_CAPTURED_SOMEWHERE = ("<captured before recording>", "<capture not known>")
_COMMAND_BUFFER = "command_buffer"
_DEVICE_KINDS = (FrameKind.KERNEL, FrameKind.MEMORY)
_NONE = -1


@dataclass(frozen=True, eq=False)
class HloTree:
    """A tree whose operations stand where they belong.

    Attributes:
        tree: The nodes.
        target: int32 [n_nodes before]: where each node went.
        entered: int32 [n_nodes before]: where each node was entered; -1: within what it became a part of.
        folded: bool [n_nodes]: operations that tell nothing that is not said above or below them.
    """

    tree: CallTree
    target: Int32Array
    entered: Int32Array
    folded: BoolArray

    def apply(self, profile: Profile) -> Profile:
        """The profile over the new tree; its slices, kernels and findings stay as they are."""
        metrics = {
            name: metric.gather(self.entered if name == "host_count" else self.target, len(self.tree))
            for name, metric in profile.metrics.items()
        }
        meta = {**profile.meta, "attributes": _without_hlo(profile.run.attributes)}
        return replace(
            profile,
            meta=meta,
            tree=self.tree,
            metrics=metrics,
            inputs=profile.inputs.moved(self.target),
            idle=profile.idle.moved(self.target),
        )


def place_operations(tree: CallTree, attributes: Attributes) -> HloTree | None:
    """Put operations where they belong; None when there are no ranges of XLA.

    Args:
        tree: As recorded.
        attributes: Of frames, by label: roles, and programs.
    """
    roles = [_ROLES.intersection(attributes.get(name, ())) for name in tree.frames.name]
    if not any(roles) and not any(name.startswith((*CALLS, COMPILE)) for name in tree.frames.name):
        return None
    return _Placing(tree, roles, HloPrograms(attributes)).result()


def _without_hlo(attributes: Attributes) -> dict[str, dict[str, str]]:
    """Attributes without those that `place_operations` has read."""
    kept = {
        label: {key: value for key, value in values.items() if key not in _ROLES and not key.startswith(PROGRAM_KEY)}
        for label, values in attributes.items()
    }
    return {label: values for label, values in kept.items() if values}


@dataclass(frozen=True)
class _Where:
    """Facts about a node that follow from the nodes above.

    Attributes:
        call: The call of a jitted function, a new node; -1: none.
        module: The module that runs, a new node; -1: none.
        module_name: Its name.
        prefix: What names of operations leave out, with a slash.
        op: The innermost operation, a new node; -1: none.
        op_name: The path of names of the operation below.
        is_captured: What follows was recorded when the command buffer was captured that now runs.
        is_compiled: A compilation runs: Python below it is JAX's own.
        is_tuned: A candidate of autotuning runs.
    """

    call: int = _NONE
    module: int = _NONE
    module_name: str = ""
    prefix: str = ""
    op: int = _NONE
    op_name: str = ""
    is_captured: bool = False
    is_compiled: bool = False
    is_tuned: bool = False


class _Placing:
    """Builds the new tree out of the old nodes, parents first."""

    def __init__(self, tree: CallTree, roles: list[frozenset[str]], programs: HloPrograms) -> None:
        self._old = tree
        self._roles = roles
        self._programs = programs
        named = list(zip(tree.frames.name, roles, strict=True))
        prefixes = {_prefix_of(name) for name, role in named if _PREFIX in role} | {""}
        op_names = [name for name, role in named if _OP_NAME in role]
        self._scopes = _beginnings(prefix + name for prefix in prefixes for name in op_names)
        self._parents, self._frames = [_NONE], tree.frame[:1].tolist()
        self._nodes: dict[tuple[int, int], int] = {}
        frames = tree.frames
        self._names = list(frames.name)
        plain = zip(frames.kind.tolist(), frames.name, frames.file, strict=True)
        self._frame_of = {(kind, name, NOWHERE): row for row, (kind, name, file) in enumerate(plain) if not file}
        self._added: list[tuple[int, str, HloPlace]] = []
        self._ops: dict[tuple[int, str, str], int] = {}
        self._containers: set[int] = set()

    def result(self) -> HloTree:
        target, is_again = np.zeros(len(self._old), np.int32), np.zeros(len(self._old), np.bool_)
        where = [_Where()]
        kinds = self._old.kind.tolist()
        rows = zip(self._old.parent[1:].tolist(), self._old.frame[1:].tolist(), kinds[1:], strict=True)
        for node, (above, frame, kind) in enumerate(rows, 1):
            target[node], found = self._place(frame, kind, int(target[above]), where[above])
            is_again[node] = target[node] in (target[above], where[above].call)
            where.append(found)
        tree = CallTree(np.array(self._parents), np.array(self._frames), self._all_frames())
        folded = self._says_nothing(tree)
        return HloTree(tree, target, np.where(is_again | folded[target], _NONE, target), folded)

    def _place(self, frame: int, kind: int, above: int, where: _Where) -> tuple[int, _Where]:
        """The new node of an old one below the new node `above`, and what it says to those below it."""
        is_inside = where.call != _NONE or where.module != _NONE
        if _PREFIX in self._roles[frame]:
            return above, replace(where, prefix=_prefix_of(self._names[frame]))
        if kind in _DEVICE_KINDS or (kind == FrameKind.SCOPE and self._names[frame].startswith(CALLBACK)):
            return self._child(above, frame), _Where()
        if is_inside and self._names[frame] == _CAPTURED:
            return above, replace(where, is_captured=True, prefix="")
        if where.is_captured:
            return self._pass_over(frame, above, where)
        if where.module == _NONE:
            return self._place_outside(frame, kind, above, where)
        return (above, where) if where.is_tuned else self._place_inside(frame, above, where)

    def _place_outside(self, frame: int, kind: int, above: int, where: _Where) -> tuple[int, _Where]:
        name = self._names[frame]
        if name.startswith(COMPILE):
            if self._names[self._frames[above]] == name:
                return above, where
            call = self._call_of(name.removeprefix(COMPILE), where, above)
            return self._child(call, frame), replace(where, is_compiled=True)
        if where.is_compiled and kind == FrameKind.PYTHON:
            return above, where
        if kind != FrameKind.OPERATOR:
            return self._child(above, frame), replace(where, is_tuned=where.is_tuned or name == AUTOTUNE)
        if _MODULE in self._roles[frame]:
            call = self._call_of(name, where, _NONE)
            node = self._child(above, frame) if call == _NONE else call
            return node, replace(where, module=node, module_name=name)
        node = self._child(above, frame)
        return node, replace(where, call=node) if name.startswith(CALLS) else where

    def _call_of(self, module: str, where: _Where, otherwise: int) -> int:
        """The call that the module belongs to: JAX names a module after the function, with other marks."""
        if where.call == _NONE:
            return otherwise
        names = (module, self._names[self._frames[where.call]])
        one, other = ("".join(filter(str.isalnum, name)) for name in names)
        return where.call if one == other else otherwise

    def _pass_over(self, frame: int, above: int, where: _Where) -> tuple[int, _Where]:
        """Where a command buffer was captured, until the module that it is a part of."""
        name = self._names[frame]
        if _MODULE not in self._roles[frame]:
            return above, where
        module = where.module if name == where.module_name else self._call_of(name, where, _NONE)
        if module == _NONE:
            return above, where
        return module, replace(where, module=module, module_name=name, is_captured=False)

    def _place_inside(self, frame: int, above: int, where: _Where) -> tuple[int, _Where]:
        name, roles = self._names[frame], self._roles[frame]
        if roles and where.op != _NONE:
            self._containers.add(where.op)
        if _OP_NAME in roles:
            op_name = where.prefix + name
            return self._chain(where.module, op_name, NOWHERE)[0], replace(where, op_name=op_name)
        if name in _CAPTURED_SOMEWHERE:
            return above, where
        if not roles:
            return self._child(above, frame), where
        op = self._op(where.module, where.module_name, name, where.op_name)
        return op, replace(where, op=op, op_name="")

    def _op(self, module: int, module_name: str, name: str, op_name: str) -> int:
        """The node of an operation: the same one wherever it was launched."""
        key = module, name, op_name
        if key not in self._ops:
            known = self._programs.find(module_name, name, op_name)
            node = self._child(module, self._frame(FrameKind.STATE, *known.state)) if known.state.name else module
            above, place = self._chain(node, known.op_name, known.place)
            op = self._child(above, self._frame(FrameKind.OPERATOR, name, place))
            if known.collective:
                op = self._child(op, self._frame(FrameKind.OPERATOR, known.collective, NOWHERE))
            self._ops[key] = op
        return self._ops[key]

    def _chain(self, node: int, op_name: str, place: HloPlace) -> tuple[int, HloPlace]:
        """The node of a path of names, and the place unless its primitive has it."""
        path = path_of_name(op_name, is_whole=op_name not in self._scopes)
        for kind, name in path[:-1]:
            node = self._child(node, self._frame(kind, name, NOWHERE))
        if not path:
            return node, place
        kind, name = path[-1]
        is_primitive = kind == FrameKind.OPERATOR and name not in CONTROL
        node = self._child(node, self._frame(kind, name, place if is_primitive else NOWHERE))
        return node, NOWHERE if is_primitive else place

    def _child(self, parent: int, frame: int) -> int:
        node = self._nodes.setdefault((parent, frame), len(self._parents))
        if node == len(self._parents):
            self._parents.append(parent)
            self._frames.append(frame)
        return node

    def _frame(self, kind: int, name: str, place: HloPlace) -> int:
        frame = self._frame_of.get((kind, name, place))
        if frame is None:
            frame = self._frame_of[kind, name, place] = len(self._names)
            self._names.append(name)
            self._added.append((kind, name, place))
        return frame

    def _all_frames(self) -> FrameTable:
        kinds, names, places = zip(*self._added, strict=True) if self._added else ((), (), ())
        added = FrameTable(
            np.array(kinds),
            list(names),
            [place.file for place in places],
            np.array([place.line for place in places]),
            np.full(len(names), -1),
        )
        return FrameTable.concatenate([self._old.frames, added])

    def _says_nothing(self, tree: CallTree) -> BoolArray:
        """Operations that contain others, whose paths are whole, and those that are called like all their kernels."""
        names: dict[int, set[str]] = {op: set() for op in self._ops.values()}
        for node, (above, kind) in enumerate(zip(self._parents, tree.kind.tolist(), strict=True)):
            if above in names:
                name = self._names[self._frames[node]]
                names[above].add(symbol_of(name) if kind == FrameKind.KERNEL else f"<{name}>")
        folded = np.zeros(len(tree), np.bool_)
        for op, below in names.items():
            frame = self._frames[op]
            is_kernel = below == {symbol_of(self._names[frame])} and not tree.frames.file[frame]
            is_loop = op in self._containers and not self._names[frame].startswith(_COMMAND_BUFFER)
            folded[op] = is_kernel or is_loop
        return folded


def _prefix_of(name: str) -> str:
    return name.removeprefix(_PREFIX_MARK) + "/"


def _beginnings(op_names: Iterable[str]) -> set[str]:
    """Names that other names begin with: these are scopes."""
    found: set[str] = set()
    for name in op_names:
        while "/" in name:
            name = name.rpartition("/")[0]
            if name in found:
                break
            found.add(name)
    return found
