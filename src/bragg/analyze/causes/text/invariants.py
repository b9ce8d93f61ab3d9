"""What in a loop of a program is computed from the same values in each turn, by its text.

A value changes if it comes from the loop's variable, from what an earlier turn left, from chance or input, or from a
state that the loop trains. What is not known to stay the same changes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from bragg.analyze.causes.text.program_text import FileText, Function, Loop, call_name, elements, names_read, names_set
from bragg.code.python_nodes import children, parts_of, walk

_CHANCE = re.compile(
    r"rand\w*|\w*random\w*|rng|normal_?|bernoulli_?|multinomial|dropout\w*|uniform_?|choice|shuffle|permutation|r?sample|"
    r"next|read\w*|load\w*|get|pop|perf_counter|time|input|recv|item_queue|exponential_?|poisson|default_rng"
)
_TRAINS = re.compile(r"backward|zero_grad|step|train_step|update\w*")
_STATE = re.compile(r"Parameter|requires_grad_?|parameters|state_dict|nn")
_IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_|append|extend|update|insert|add|remove|copyto|fill|sort|clear|push|put|roll")
_READS = {"append", "appendleft", "extend", "insert", "add", "print"}
_JOINS = re.compile(r"cat|concat\w*|[hv]?stack|pad|append|repeat\w*")
_PLACES = ("dtype", "device")  # of tensors, which turns do not change
_SHAPES = (*_PLACES, "shape", "ndim", "size", "dim", "numel", "len")
_ORDERED = (ast.List, ast.Tuple, ast.ListComp)


@dataclass(frozen=True, eq=False)
class Turns:
    """The turns of one loop.

    Attributes:
        file: That it is in.
        loop: The loop.
        data_changes: Whether to take its data as changing though it does not: a loop that repeats everything stands
            for one with new data.
        shapes_stay: Whether to take shapes as the same where no text says that they change.
    """

    file: FileText
    loop: Loop
    data_changes: bool = False
    shapes_stay: bool = False

    @cached_property
    def function(self) -> Function:
        """That the loop is in."""
        return self.file.function_of(self.loop)

    @cached_property
    def goes_on(self) -> bool:
        """Whether turns go on from what earlier ones left, or take the same list again, as epochs do."""
        inner = [each for each in parts_of(self.loop, ast.For) if each is not self.loop]
        takes_again = any(self._is_listed(each.iter) and not _is_counted(each.iter) for each in inner)
        return takes_again or self.hands_on or (self.trains and bool(self._optimized))

    @cached_property
    def hands_on(self) -> bool:
        """Whether a turn computes with what the one before left, other than to add to it."""
        return bool(self.carried & self._used)

    @cached_property
    def _optimized(self) -> frozenset[str]:
        """Tensors of the program that an optimizer changes, not those of a network: `torch.optim.Adam([image])`."""
        calls = (each for each in parts_of(self.file.tree, ast.Call) if each.args)
        lists = [each.args[0] for each in calls if "optim." in ast.unparse(each.func)]
        parts = [part for each in lists if isinstance(each, ast.List) for part in each.elts]
        return frozenset(call_name(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute)))

    @cached_property
    def fresh(self) -> frozenset[str]:
        """Variables with data of this turn: of the loop's variable, of chance or of input."""
        found = set(self._targets)
        statements = [each for each in walk(self.loop) if isinstance(each, (ast.Assign, ast.AnnAssign))]
        for _ in statements:
            for each in statements:
                if each.value and (names_read(each.value) & found or any(map(_is_chance, walk(each.value)))):
                    found |= names_set(each)
        return frozenset(found)

    @cached_property
    def _used(self) -> frozenset[str]:
        """Variables that the loop reads in statements other than those that set them, or hands to functions."""
        found: set[str] = set()
        for each in walk(self.loop):
            if isinstance(each, ast.stmt) and (value := computed(each)) is not None:
                found |= names_read(value) - names_set(each)
                found |= {name for call in _calls_of(value) if self.called(call) for name in _names_handed(call)}
        return frozenset(found)

    @cached_property
    def changing(self) -> frozenset[str]:
        """Variables of the function that differ between turns."""
        carried = self.carried | self._targets | self._mutated(self.loop)
        return self._spread(self.loop, carried)

    def changing_in(self, function: Function, call: ast.stmt, changing: frozenset[str]) -> frozenset[str]:
        """Variables of a function that a statement calls, which differ between turns.

        Args:
            function: That is called.
            call: The statement.
            changing: Variables that differ where the statement is.
        """
        if isinstance(function, (ast.Module, ast.Lambda)):
            return frozenset()
        named = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        bound = named[1:] if named[:1] in (["self"], ["cls"]) else named
        found = {each.arg for each in (function.args.vararg, function.args.kwarg) if each}
        calls = self._calls_in(call, function)
        for made in calls:
            for at, value in enumerate(made.args):
                if isinstance(value, ast.Starred):
                    found |= set(bound)
                elif at < len(bound) and self.changes(value, changing):
                    found.add(bound[at])
            for keyword in made.keywords:
                if keyword.arg is None:
                    found |= set(bound)
                elif self.changes(keyword.value, changing):
                    found.add(keyword.arg)
        if named[:1] == ["self"] and any(self.changes(made.func, changing) for made in calls):
            found.add("self")
        if self.function in self.file.functions_around(function):
            own = {name for name in changing if self.file.sets(name, function)}
            found |= (names_read(function) & changing) - {*named, *own}
        return self._spread(function, found | self._mutated(function))

    def _calls_in(self, statement: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
        """The calls of a function in a statement; all, if it is called by another name."""
        calls = _calls_of(computed(statement) or statement)
        return [each for each in calls if function in self.called(each)] or calls

    def changes(self, value: ast.AST, changing: frozenset[str]) -> bool:
        """Whether a value may differ between turns, where these variables do."""
        parts = _parts_of_values(value, _SHAPES if self.shapes_stay and not self._reshapes else _PLACES)
        read = {each.id for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        return bool(read & changing) or any(map(self._is_unsteady, parts))

    @cached_property
    def _reshapes(self) -> bool:
        """Whether turns may change shapes: they make what they carry longer, or cut at what is no constant."""
        functions = {self.function, *self._reached(_calls_of(self.loop))}
        parts = [part for each in functions for part in walk(each)]
        bounds = [each for part in parts if isinstance(part, ast.Slice) for each in (part.lower, part.upper)]
        grows = any(each.attr == "append" for each in parts_of(self.loop, ast.Attribute))
        if grows or any(map(_is_number_of_turn, bounds)):
            return True
        set_to = [each for each in walk(self.loop) if isinstance(each, ast.Assign) and names_set(each) & self.carried]
        return any(_JOINS.fullmatch(call_name(call)) for each in set_to for call in _calls_of(each))

    def _is_unsteady(self, part: ast.AST) -> bool:
        if _is_chance(part):
            return True
        if isinstance(part, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if isinstance(part, ast.Call):
            is_frozen = call_name(part) in self._frozen
            unsteady = _has_chance if is_frozen else self._is_unsteady_function
            return any(unsteady(each) for each in self.called(part))
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            return part.attr in self._set_later or (self.trains and self._is_state(part))
        if isinstance(part, ast.Name) and self.data_changes and self._is_data(part):
            return True
        return isinstance(part, ast.Name) and self.trains and self._is_state(part)

    def called(self, call: ast.Call) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions of this file that a call may be of, those of objects that it calls as well."""
        made = {call_name(part) for each in self.file.makers(call.func) for part in elements(each)}
        calls = (each for name in ("__call__", "forward") for each in self.file.functions.get(name, []))
        objects = [each for each in calls if getattr(self.file.parents[each], "name", "") in made]
        return [*self.file.functions.get(call_name(call), []), *objects]

    def _is_unsteady_function(self, function: ast.AST) -> bool:
        if function not in self._unsteady:
            self._unsteady[function] = False  # functions may call each other
            self._unsteady[function] = any(map(self._is_unsteady, walk(function)))
        return self._unsteady[function]

    @cached_property
    def _unsteady(self) -> dict[ast.AST, bool]:
        return {}

    @cached_property
    def trains(self) -> bool:
        """Whether turns change parameters."""
        inside = [self.loop, *self._reached(_calls_of(self.loop))]
        return any(
            isinstance(call.func, ast.Attribute) and _TRAINS.fullmatch(call.func.attr) and not self._is_own(call.func)
            for each in inside
            for call in _calls_of(each)
        )

    def _is_own(self, called: ast.Attribute) -> bool:
        """Whether a method is one of a class of this file, whose text tells what it does."""
        owner = called.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            classes: list[ast.ClassDef | None] = [*self._classes_around(called)]
        else:
            classes = [self.file.classes.get(call_name(each)) for each in self.file.makers(owner)]
        return bool(classes) and all(each is not None and _has_method(each, called.attr) for each in classes)

    def _classes_around(self, part: ast.AST) -> list[ast.ClassDef]:
        """The innermost class that a part is in."""
        while part in self.file.parents:
            part = self.file.parents[part]
            if isinstance(part, ast.ClassDef):
                return [part]
        return []

    def _is_state(self, part: ast.Name | ast.Attribute) -> bool:
        """Whether a variable may be a parameter or a network that is not frozen."""
        if isinstance(part, ast.Name) and part.id in ("torch", "F", "nn", "np", "math"):
            return False
        name = call_name(part)
        if name in self._frozen:
            return False
        values = list(self.file.origins(part))
        return name == "self" or any(
            isinstance(each, (ast.Name, ast.Attribute))
            and (_STATE.fullmatch(call_name(each)) or call_name(each) in {*self.file.classes, *self._optimized})
            for each in values
        )

    @cached_property
    def _frozen(self) -> set[str]:
        """Networks whose parameters nothing trains: `net.requires_grad_(False)`, alone or for each parameter."""
        found = set()
        for each in walk(self.file.tree):
            if not (isinstance(each, ast.Call) and call_name(each) == "requires_grad_" and _is_false(each)):
                continue
            owner = each.func.value if isinstance(each.func, ast.Attribute) else each
            above = self.file.parents[each]
            kept = above.targets[0] if isinstance(above, ast.Assign) else owner  # it returns its owner
            found.add(call_name(kept))
            for part in self.file.origins(owner):
                if isinstance(part, ast.Attribute) and part.attr == "parameters":
                    found.add(call_name(part.value))
        return found - {""}

    def _is_data(self, part: ast.Name) -> bool:
        """Whether a variable may hold a tensor: it is no number, no function, no class and no network."""
        if not isinstance(part.ctx, ast.Load) or part.id == "self":
            return False
        values = self.file.assigned(part.id, self.file.function_of(part))
        return any(not _is_plain(value) and not self._is_state(part) for value in values)

    @cached_property
    def _targets(self) -> frozenset[str]:
        """Variables of this loop and, unless they take the elements of a list, of loops in it."""
        found: set[str] = set()
        for each in walk(self.loop):
            if isinstance(each, (ast.For, ast.AsyncFor)) and (each is self.loop or not self._is_listed(each.iter)):
                found |= names_set(each.target)
        return frozenset(found)

    def _is_listed(self, value: ast.expr) -> bool:
        """Whether each loop over a value takes the same."""
        if isinstance(value, ast.Call) and call_name(value) in ("range", "zip", "enumerate", "reversed"):
            return all(self._is_listed(each) for each in value.args)
        if isinstance(value, ast.Call):
            return call_name(value) in ("split", "chunk", "unbind", "arange", "keys", "values", "items")
        if isinstance(value, ast.Name):
            values = self.file.assigned(value.id, self.file.function_of(value))
            return bool(values) and all(isinstance(each, (*_ORDERED, ast.Constant, ast.BinOp)) for each in values)
        return isinstance(value, (*_ORDERED, ast.Constant, ast.BinOp, ast.Attribute))

    @cached_property
    def carried(self) -> frozenset[str]:
        """Variables that a turn reads before it sets them: as the one before left them."""
        read: dict[str, tuple[int, int]] = {}
        stored: dict[str, tuple[int, int]] = {}
        for each in walk(self.loop):
            if not isinstance(each, ast.Name):
                continue
            at = (each.lineno, each.col_offset)
            if isinstance(each.ctx, ast.Load):
                read[each.id] = min(read.get(each.id, at), at)
            else:
                end = self._end_of_statement(each)
                stored[each.id] = min(stored.get(each.id, end), end)
        augmented = {each.target.id for each in parts_of(self.loop, ast.AugAssign) if isinstance(each.target, ast.Name)}
        return frozenset(augmented | {name for name, at in stored.items() if read.get(name, at) < at})

    def _end_of_statement(self, name: ast.Name) -> tuple[int, int]:
        """Where a variable has its new value: behind the statement that sets it; of a loop, in its body."""
        part: ast.AST = name
        while not isinstance(part, (ast.stmt, ast.comprehension)):
            part = self.file.parents[part]
        if isinstance(part, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
            return (part.body[0].lineno, 0)
        if isinstance(part, ast.comprehension):
            return (0, 0)
        return (part.end_lineno or part.lineno, part.end_col_offset or 0) if isinstance(part, ast.stmt) else (0, 0)

    def _mutated(self, within: ast.AST) -> frozenset[str]:
        """Variables whose values are changed in place, or may be by a call whose result nobody takes."""
        found: set[str] = set()
        for each in walk(within):
            if isinstance(each, (ast.Subscript, ast.Attribute)):
                is_changed = isinstance(each.ctx, ast.Store) or _IN_PLACE.fullmatch(getattr(each, "attr", ""))
                found |= {_root(each)} if is_changed else set()
            elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and not self._only_reads(each.value):
                found |= {_root(value) for value in each.value.args}
            elif isinstance(each, ast.keyword) and each.arg == "out":
                found |= {_root(each.value)}
        return frozenset(found - {"", "self", "torch"})

    def _only_reads(self, call: ast.Call) -> bool:
        """Whether a call leaves its arguments as they are: it keeps them in a list or a set, or shows them."""
        name = call_name(call)
        return name in _READS and name not in self.file.functions

    @cached_property
    def _set_later(self) -> frozenset[str]:
        """Attributes that turns may set, or change in place."""
        found: set[str] = set()
        inside = set(walk(self.loop))
        for each in walk(self.file.tree):
            if not isinstance(each, (ast.Attribute, ast.Subscript)) or not self._may_run(each, inside):
                continue
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                found.add(each.attr)
            is_changed = isinstance(each.ctx, ast.Store) or _IN_PLACE.fullmatch(getattr(each, "attr", ""))
            if is_changed and isinstance(each.value, ast.Attribute):
                found.add(each.value.attr)
        return frozenset(found)

    def _may_run(self, part: ast.AST, inside: set[ast.AST]) -> bool:
        """Whether turns may run a part: no constructor's, not before the loop, not what they seldom call."""
        function = self.file.function_of(part)
        if getattr(function, "name", "") in ("__init__", "reset_parameters") or function in self._seldom:
            return False
        return part in inside or function is not self.function or isinstance(function, ast.Module)

    @cached_property
    def _seldom(self) -> set[ast.AST]:
        """Functions that turns do not call, or only in one of several (`if step % 50 == 0`), but other code does."""
        everywhere = _calls_of(self.file.tree)
        functions = [each for named in self.file.functions.values() for each in named]
        handed = {call_name(each) for each in walk(self.file.tree) if self._is_handed(each)}
        unnamed = {each for each in functions if each.name in handed or _is_called_unnamed(each)} - {self.function}
        often = [each for each in _calls_of(self.loop) if not self.is_seldom(each)]
        often += [call for each in unnamed for call in _calls_of(each)]
        return self._reached(everywhere) - self._reached(often) - unnamed - {self.function}

    def _is_handed(self, part: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
        """Whether a function's name may be read to call it elsewhere."""
        if not isinstance(part, (ast.Name, ast.Attribute)) or not isinstance(part.ctx, ast.Load):
            return False
        above = self.file.parents[part]
        return not isinstance(above, (ast.Call, ast.Attribute)) or (
            isinstance(above, ast.Call) and above.func is not part
        )

    def _reached(self, calls: list[ast.Call]) -> set[ast.AST]:
        """Functions of this file that some calls, or what these call, are of."""
        found: set[ast.AST] = set()
        waiting = list(calls)
        while waiting:
            new = [each for each in self.called(waiting.pop()) if each not in found]
            found.update(new)
            waiting += [call for each in new for call in _calls_of(each)]
        return found

    def is_seldom(self, part: ast.AST) -> bool:
        """Whether a part of the loop runs in one of several turns."""
        while part is not self.loop:
            above = self.file.parents[part]
            if isinstance(above, ast.If) and part in above.body and self._is_of_few_turns(above.test):
                return True
            part = above
        return False

    def _is_of_few_turns(self, test: ast.expr) -> bool:
        """Whether a test compares a remainder: `step % 50 == 0`, `not step % 50`."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(map(self._is_of_few_turns, test.values))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            compared = test.operand
        elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
            compared = test.left
        else:
            return False
        return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod) for each in self.file.makers(compared))

    def _spread(self, within: ast.AST, changing: frozenset[str] | set[str]) -> frozenset[str]:
        """These variables, and those that are set from what changes."""
        found = set(changing)
        statements = [each for each in walk(within) if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign))]
        statements_of = [(names_set(each), each.value) for each in statements if each.value is not None]
        statements_of += [(names_set(each.target), each.iter) for each in _loops_in(within)]
        statements_of += [(names_set(each.target), each.value) for each in parts_of(within, ast.NamedExpr)]
        grows = True
        while grows:
            before = len(found)
            for stored, value in statements_of:
                if not stored <= found and self.changes(value, frozenset(found)):
                    found |= stored
            grows = len(found) > before
        return frozenset(found)


def _calls_of(part: ast.AST) -> list[ast.Call]:
    return list(parts_of(part, ast.Call))


def _names_handed(call: ast.Call) -> set[str]:
    """Variables that are arguments of a call, as they are."""
    return {each.id for each in (*call.args, *(word.value for word in call.keywords)) if isinstance(each, ast.Name)}


def _has_method(owner: ast.ClassDef, name: str) -> bool:
    return any(isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name == name for each in owner.body)


def _is_called_unnamed(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function may be called where its name is not written: `forward`, `__getitem__`, properties."""
    is_changed = any(not ast.unparse(each).startswith("torch.") for each in function.decorator_list)
    return function.name == "forward" or is_changed or (function.name.startswith("__") and function.name != "__init__")


def _loops_in(within: ast.AST) -> list[ast.For | ast.AsyncFor | ast.comprehension]:
    return [each for each in walk(within) if isinstance(each, (ast.For, ast.AsyncFor, ast.comprehension))]


def computed(statement: ast.stmt) -> ast.expr | None:
    """What a statement computes itself, without its body; None: nothing, or several things."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if isinstance(statement, (ast.While, ast.If)):
        return statement.test
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def _root(part: ast.AST) -> str:
    """The variable that an expression of attributes and subscripts begins with; empty: it begins with none."""
    while isinstance(part, (ast.Attribute, ast.Subscript, ast.Starred)):
        part = part.value
    return part.id if isinstance(part, ast.Name) else ""


def _parts_of_values(value: ast.AST, without: Collection[str]) -> list[ast.AST]:
    """An expression and its parts, without variables of which only such an attribute is read, or the length."""
    found = [value]
    for one in found:
        of = one.value if isinstance(one, ast.Attribute) and one.attr in without else None
        if isinstance(one, ast.Call) and call_name(one) == "len" and "len" in without and one.args:
            of = one.args[0]
        if not isinstance(of, ast.Name) or of.id == "self":
            found += children(one)
    return found


def _is_number_of_turn(bound: ast.expr | None) -> bool:
    """Whether where a slice ends is neither a constant nor the size of something."""
    parts = [] if bound is None else _parts_of_values(bound, _SHAPES)
    return any(isinstance(each, ast.Name) for each in parts)


def _is_false(call: ast.Call) -> bool:
    values = [*call.args, *(each.value for each in call.keywords)]
    return any(isinstance(each, ast.Constant) and each.value is False for each in values)


def _is_chance(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and bool(_CHANCE.fullmatch(call_name(part)))


def _has_chance(function: ast.AST) -> bool:
    return any(map(_is_chance, walk(function)))


def _is_counted(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and call_name(value) == "range"


def _is_plain(value: ast.expr) -> bool:
    return all(
        isinstance(each, (ast.Constant, ast.Tuple, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Load))
        for each in walk(value)
    )
