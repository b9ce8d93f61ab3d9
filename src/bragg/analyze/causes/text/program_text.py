"""The program's own text, as far as the profile has it: statements at lines of call paths, and where values come from.

What is said by it is a guess: names are followed by their spelling, and nothing is executed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from bragg.code.python_nodes import children, parts_of, walk
from bragg.model import FrameKind, Profile

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
Loop = ast.For | ast.AsyncFor | ast.While

_SAME_VALUES = {
    *("T", "mT", "t", "to", "cuda", "cpu", "float", "half", "bfloat16", "double", "contiguous", "transpose"),
    *("permute", "view", "reshape", "unsqueeze", "squeeze", "expand", "clone", "detach", "repeat", "type", "flip"),
    *("requires_grad_", "eval", "train", "flatten", "unflatten", "expand_as", "type_as"),
}
_LISTS = ("ModuleList", "Sequential", "list", "tuple", "compile")
_MAX_ORIGINS = 400  # parts of expressions that a value may come from


def call_name(call: ast.expr) -> str:
    """The last part of what is called or named: `matmul` of `torch.matmul(a, b)`; empty: it has no name."""
    func = call.func if isinstance(call, ast.Call) else call
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def elements(made: ast.expr) -> Iterator[ast.expr]:
    """What a list of objects holds: `nn.ModuleList(Layer() for _ in range(n))`; of anything else itself."""
    if isinstance(made, (ast.List, ast.Tuple)):
        within = made.elts
    elif isinstance(made, (ast.ListComp, ast.GeneratorExp)):
        within = [made.elt]
    elif isinstance(made, ast.Call) and call_name(made) in _LISTS:
        within = made.args
    else:
        yield made
        return
    for each in within:
        yield from elements(each)


def names_read(part: ast.AST) -> set[str]:
    """Names of variables that an expression or statement reads."""
    return {each.id for each in parts_of(part, ast.Name) if isinstance(each.ctx, ast.Load)}


def reads_of(part: ast.AST, name: str) -> list[ast.Name]:
    """Where an expression, a statement or a function reads a variable."""
    return [each for each in parts_of(part, ast.Name) if each.id == name and isinstance(each.ctx, ast.Load)]


def names_set(part: ast.AST) -> set[str]:
    """Names of variables that an expression or statement sets."""
    return {each.id for each in parts_of(part, ast.Name) if isinstance(each.ctx, ast.Store)}


def is_raised(*values: ast.expr) -> bool:
    """Whether all are as `g[:, None]`, `g[None]` or `g.unsqueeze(0)`."""
    return all(
        call_name(value) == "unsqueeze"
        if isinstance(value, ast.Call)
        else isinstance(value, ast.Subscript) and any(_is_none(each) for each in walk(value.slice))
        for value in values
    )


def _is_none(part: ast.AST) -> bool:
    return isinstance(part, ast.Constant) and part.value is None


@dataclass(frozen=True, eq=False)
class FileText:
    """One file of a program.

    Attributes:
        tree: As Python parsed it.
    """

    tree: ast.Module

    @cached_property
    def text(self) -> str:
        """As Python writes it."""
        return ast.unparse(self.tree)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each part is in."""
        return {child: each for each in walk(self.tree) for child in children(each)}

    @cached_property
    def _statements(self) -> dict[int, ast.stmt]:
        """The innermost statement of each line; of those with bodies the lines before these."""
        found: dict[int, ast.stmt] = {}
        for each in walk(self.tree):  # outer ones come first
            if isinstance(each, ast.stmt):
                found.update(dict.fromkeys(range(each.lineno, (each.end_lineno or each.lineno) + 1), each))
        return found

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Functions and methods by their names."""
        found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for each in walk(self.tree):
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(each.name, []).append(each)
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """Classes by their names."""
        return {each.name: each for each in parts_of(self.tree, ast.ClassDef)}

    @cached_property
    def attributes(self) -> dict[str, list[ast.expr]]:
        """What attributes of objects are set to, by their names, with fields of classes and what is registered."""
        found: dict[str, list[ast.expr]] = {}
        for field, value in (each for owner in self.classes.values() for each in self._fields(owner)):
            found.setdefault(field, []).append(value)
        for each in walk(self.tree):
            for target, value in _assigned(each):
                if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, []).append(value)
            if isinstance(each, ast.Call) and call_name(each).startswith("register_") and len(each.args) > 1:
                name = each.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.setdefault(name.value, []).append(each.args[1])
        return found

    def _fields(self, owner: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
        """Fields that a class gives values, with these and, if it has no constructor, those that calls may give."""
        own = [(call_name(target), value) for each in owner.body for target, value in _assigned(each)]
        yield from own
        if not any(getattr(each, "name", "") == "__init__" for each in owner.body):
            made = self._calls.get(owner.name, [])
            keywords = [each for call in (*made, *self._calls.get("replace", [])) for each in call.keywords]
            for name in dict(own):
                yield from ((name, each.value) for each in keywords if each.arg in (name, None))
                yield from ((name, each) for call in made for each in call.args)

    def statement(self, line: int) -> ast.stmt | None:
        """The statement of a line."""
        return self._statements.get(line)

    def function_of(self, part: ast.AST) -> Function:
        """The innermost function that a part is in; the whole file, if it is in none."""
        while part in self.parents:
            part = self.parents[part]
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return part
        return self.tree

    def functions_around(self, part: ast.AST) -> Iterator[Function]:
        """The functions that a part is in, the innermost first, and the whole file."""
        while part is not self.tree:
            part = self.function_of(part)
            yield part

    def loops_of(self, statement: ast.stmt) -> list[Loop]:
        """The loops of its function that a statement is in the body of, the outermost first."""
        found: list[Loop] = []
        part: ast.AST = statement
        while part in self.parents and not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            above = self.parents[part]
            if isinstance(above, (ast.For, ast.AsyncFor, ast.While)) and part in above.body:
                found.append(above)
            part = above
        return found[::-1]

    def assigned(self, name: str, function: ast.AST) -> list[ast.expr]:
        """What a variable is set to in a function, or where the function has it from: one around it, or the file."""
        return self._names_of(self._owner(name, function)).get(name, [])

    def _owner(self, name: str, function: ast.AST) -> ast.AST:
        """The innermost function around that has a variable of this name; the whole file, if none has."""
        around = (function, *self.functions_around(function))
        return next((each for each in around if name in self._names_of(each) or name in _parameters(each)), self.tree)

    def sets(self, name: str, function: Function) -> bool:
        """Whether a function sets a variable itself."""
        return name in self._names_of(function)

    def _names_of(self, function: ast.AST) -> dict[str, list[ast.expr]]:
        if function not in self._names:
            found: dict[str, list[ast.expr]] = {}
            for each in walk(function):
                for target, value in _assigned(each):
                    if isinstance(target, ast.Name) and self.function_of(target) is function:
                        found.setdefault(target.id, []).append(value)
            self._names[function] = found
        return self._names[function]

    @cached_property
    def _names(self) -> dict[ast.AST, dict[str, list[ast.expr]]]:
        return {}

    def arguments(self, name: str, function: Function) -> list[ast.expr]:
        """What calls in this file give for a parameter of a function; empty: it has no such parameter, or no call."""
        if isinstance(function, ast.Module):
            return []
        parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        named = [*parameters, *(each.arg for each in function.args.kwonlyargs)]
        if name not in named or isinstance(function, ast.Lambda):
            return []
        skipped = 1 if parameters[:1] in (["self"], ["cls"]) else 0
        at = parameters.index(name) - skipped if name in parameters else len(parameters)
        calls = self._calls_of(function)
        found = [each.value for call in calls for each in call.keywords if each.arg == name]
        positional = [call.args for call in calls if 0 <= at < len(call.args)]
        return found + [args[at] for args in positional if not any(isinstance(each, ast.Starred) for each in args)]

    def _calls_of(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
        """Calls of a function by its name; of a constructor by its class, of what calls an object does by variables."""
        owner = self.parents[function]
        if not isinstance(owner, ast.ClassDef) or function.name not in ("__init__", "__call__", "forward"):
            return self._calls.get(function.name, [])
        if function.name == "__init__":
            return self._calls.get(owner.name, [])
        made = {
            call_name(target)
            for each in walk(self.tree)
            for target, value in _assigned(each)
            if any(isinstance(part, ast.Call) and call_name(part) == owner.name for part in walk(value))
        }
        return [call for name in sorted(made - {""}) for call in self._calls.get(name, [])]

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the name that they call."""
        found: dict[str, list[ast.Call]] = {}
        for each in walk(self.tree):
            if isinstance(each, ast.Call):
                found.setdefault(call_name(each), []).append(each)
        return found

    def origins(self, value: ast.expr) -> Iterator[ast.AST]:
        """Parts of all expressions that a value may come from, its own first.

        Followed are variables, attributes, arguments and what functions of this file return.
        """
        waiting: list[ast.AST] = [value]
        seen: set[ast.AST] = set()
        while waiting and len(seen) < _MAX_ORIGINS:
            for part in walk(waiting.pop(0)):
                if part in seen:
                    continue
                seen.add(part)
                yield part
                waiting += self.behind(part)

    def makers(self, value: ast.expr) -> list[ast.expr]:
        """Expressions that make a value, beyond variables and what only changes its type, place or layout."""
        waiting, seen, found = [value], set[ast.AST](), list[ast.expr]()
        while waiting and len(seen) < _MAX_ORIGINS:
            part = waiting.pop()
            if part in seen:
                continue
            seen.add(part)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _SAME_VALUES:
                behind = [part.func.value]
            elif isinstance(part, ast.Subscript) and (entries := self._entries(part)):
                behind = entries
            elif isinstance(part, ast.Subscript) or (isinstance(part, ast.Attribute) and part.attr in _SAME_VALUES):
                behind = [part.value]
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
                behind = [part.left]
            else:
                behind = self.behind(part)
            waiting += behind
            found += [] if behind else [part]
        return found

    def _entries(self, part: ast.Subscript) -> list[ast.expr]:
        """What dictionaries of this file hold for a key that is a constant: `{"net": Net()}["net"]`."""
        if not (isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str)):
            return []
        held = [each for each in self.origins(part.value) if isinstance(each, ast.Dict)]
        pairs = [pair for each in held for pair in zip(each.keys, each.values, strict=True)]
        return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == part.slice.value]

    def behind(self, part: ast.AST) -> list[ast.expr]:
        """What a variable or an attribute is set to and given, and what a call of a function of this file returns."""
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            function = self.function_of(part)
            given = self.arguments(part.id, function)
            return self.assigned(part.id, function) + given + _default(part.id, function)
        if isinstance(part, ast.Attribute):
            return self.attributes.get(part.attr, [])
        if isinstance(part, ast.Call):
            inside = (each for function in self.functions.get(call_name(part), []) for each in walk(function))
            returns = [each for each in inside if isinstance(each, ast.Return) and self._may_run(each)]
            return [each.value for each in returns if each.value is not None]
        return []

    def _may_run(self, part: ast.AST) -> bool:
        """Whether no `if` above a part compares a setting with another value than the one that this has."""
        above = self.parents[part]
        if isinstance(above, ast.If) and part is not above.test:
            is_true = self._decided(above.test)
            if is_true is not None and is_true != (part in above.body):
                return False
        return isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) or self._may_run(above)

    def _decided(self, test: ast.expr) -> bool | None:
        """What a comparison with a constant comes to, where all that is compared are constants; None: not known."""
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq))):
            return None
        sides = [self.behind(each) or [each] for each in (test.left, test.comparators[0])]
        pairs = [(left, right) for left in sides[0] for right in sides[1]]
        equal = {
            left.value == right.value if isinstance(left, ast.Constant) and isinstance(right, ast.Constant) else None
            for left, right in pairs
        }
        is_equal = equal.pop() if len(equal) == 1 else None
        return None if is_equal is None else is_equal == isinstance(test.ops[0], ast.Eq)


def _parameters(function: ast.AST) -> set[str]:
    """Names of a function's parameters, which hide variables of the file."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return set()
    return {each.arg for each in parts_of(function.args, ast.arg)}


def _default(name: str, function: Function) -> list[ast.expr]:
    """What a parameter of a function is where a call gives nothing for it."""
    if isinstance(function, ast.Module):
        return []
    listed = [*function.args.posonlyargs, *function.args.args]
    pairs = zip(reversed(listed), reversed(function.args.defaults), strict=False)
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return [value for parameter, value in (*pairs, *named) if parameter.arg == name and value is not None]


def _assigned(part: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of a statement with their values; of a tuple each has its own, where there is one."""
    if isinstance(part, ast.Assign):
        pairs = [(target, part.value) for target in part.targets]
    elif isinstance(part, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and part.value is not None:
        pairs = [(part.target, part.value)]
    elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
        pairs = [(part.target, part.iter)]
    elif isinstance(part, ast.withitem) and part.optional_vars is not None:
        pairs = [(part.optional_vars, part.context_expr)]
    else:
        return
    while pairs:
        target, value = pairs.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            each_has_one = len(values) == len(target.elts)
            pairs += [(each, values[at] if each_has_one else value) for at, each in enumerate(target.elts)]
        else:
            yield target.value if isinstance(target, ast.Starred) else target, value


class ProgramText:
    """The files of a program.

    Args:
        profile: Whose sources hold them.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._files: dict[str, FileText | None] = {}

    @property
    def is_known(self) -> bool:
        """Whether the profile has the text of a file that a call path names."""
        sources, frames = self._profile.sources, self._profile.tree.frames
        kinds = frames.kind.tolist()
        return any(file in sources for file, kind in zip(frames.file, kinds, strict=True) if kind == FrameKind.PYTHON)

    def file(self, name: str) -> FileText | None:
        """One file; None: the profile lacks it, or it is no Python."""
        if name not in self._files:
            self._files[name] = _parsed(self._profile.sources.get(name, ""))
        return self._files[name]

    def at(self, node: int) -> tuple[FileText, ast.stmt] | None:
        """The file and the statement of a node of Python code; None: its text is not known."""
        frame = int(self._profile.tree.frame[node])
        file = self.file(self._profile.tree.frames.file[frame])
        statement = file.statement(int(self._profile.tree.frames.line[frame])) if file else None
        return (file, statement) if file and statement else None


def _parsed(text: str) -> FileText | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FileText(ast.parse(text)) if text else None
    except (SyntaxError, ValueError, RecursionError):
        return None
