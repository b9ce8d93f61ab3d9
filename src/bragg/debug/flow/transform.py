"""Rewrites a kernel so that programs of a batch may part ways.

The kernel stays one function with its own file, lines and local names, so debuggers and tracebacks show the author's
code. Around each `if` and loop the local names are handed to `bragg.debug.flow.divergence`, which narrows them to the
programs that continue and merges them where the ways meet again:

    _b1 = _bragg.Branch(test, (True,), ("x",), ())  # which of the names are assigned, and which on one way alone
    if _b1.then((x,)):
        (x,) = _b1.values
        ...
        _b1.done((x,))
    if _b1.otherwise():
        (x,) = _b1.values
        _b1.done((x,))
    (x,) = _b1.join()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bragg.debug.faults import Unsupported
from bragg.debug.flow.global_names import mark_refused
from bragg.debug.flow.nodes import children, walk
from bragg.debug.flow.ways import gives, taken_names, taken_sides
from bragg.debug.versions import is_before

__all__ = ["rewrite"]

_NO_WAY = {
    ast.AsyncFunctionDef: "async def",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.Await: "await",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
}
# What most nodes are, and what every kernel may have.
_MOST = frozenset({ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.BinOp, ast.Subscript, ast.Expr, ast.keyword})
# Statements that Triton minds where it compiles them: it leaves out what a constant condition rules out.
_MINDED = {
    ast.Try: "try",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.Raise: "raise",
    ast.Match: "match",
}


def rewrite(function: ast.FunctionDef, filename: str, names: Mapping[str, Any] | None = None) -> ast.FunctionDef:
    """The function with its control flow made explicit.

    Args:
        function: Parsed, with the line numbers of its file; it is changed in place.
        filename: For messages.
        names: Global names, to tell of those that Triton refuses; None: tell of none.

    Raises:
        Unsupported: A construct that Triton kernels do not have, or the engine does not know.
    """
    function.decorator_list = []
    nodes = walk(function)
    if any(map(_minded, nodes)):
        function = _Minding().visit(function)
        nodes = walk(function)
    _Checker(function, filename).check(nodes)
    rewriter = _Rewriter(function, nodes)
    if names is not None:
        mark_refused(function, names, rewriter.local_names())
    return rewriter.result()


class _Minding(ast.NodeTransformer):
    """Puts a fault in the place of a statement that Triton does not compile."""

    def visit(self, node: ast.AST) -> Any:
        """Replace one."""
        word = _minded(node)
        if not word:
            return self.generic_visit(node)
        return _place(_statement(f"_bragg.minded({word!r})"), node)


def _minded(node: ast.AST) -> str:
    """What Triton does not compile of a statement; empty: it does."""
    if isinstance(node, ast.Assign | ast.AugAssign) and _has_part(node):
        return ast.unparse(node)
    return _MINDED.get(type(node), "")


def _has_part(node: ast.Assign | ast.AugAssign) -> bool:
    """It assigns to a part of a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = (one for target in targets for one in walk(target))
    return any(isinstance(one, ast.Subscript | ast.Attribute) and isinstance(one.ctx, ast.Store) for one in stored)


class _Checker:
    def __init__(self, function: ast.FunctionDef, filename: str) -> None:
        self._function, self._filename = function, filename

    def check(self, nodes: Sequence[ast.AST]) -> None:
        """Refuse what is among all nodes of the function."""
        for node in nodes:
            if type(node) in _MOST:
                continue
            name = _NO_WAY.get(type(node))
            if name:
                self._refuse(node, f"`{name}` in a kernel is not supported", "Triton does not compile it either")
            if isinstance(node, ast.FunctionDef) and node is not self._function:
                self._refuse(node, "a function inside of a kernel is not supported", "Make it a @triton.jit function")
            if isinstance(node, ast.For | ast.While) and node.orelse:
                self._refuse(node, "`else` after a loop is not supported", "Triton does not compile it either")
            if isinstance(node, ast.For) and not isinstance(node.target, ast.Name):
                self._refuse(node, "a loop with several targets is not supported", "Loop over a range")
            if isinstance(node, ast.IfExp) and any(isinstance(inner, ast.NamedExpr) for inner in walk(node)):
                self._refuse(node, "`:=` inside of a conditional expression is not supported", "Assign it before")
            if isinstance(node, ast.Lambda):
                self._check_lambda(node)
            if isinstance(node, ast.Compare) and len(node.ops) > 1 and is_before(3, 9):
                self._refuse(node, "a chain of comparisons needs Triton 3.9", "Join two comparisons by `and`, or by &")
            if isinstance(node, ast.With) and any(item.optional_vars is not None for item in node.items):
                self._refuse(node, "`with … as …` is not supported", "Call the function before the block")
            if isinstance(node, ast.Assign) and len(node.targets) > 1:
                self._refuse(node, "an assignment to several targets at once is not supported", "Assign one by one")

    def _check_lambda(self, node: ast.Lambda) -> None:
        """It takes values when it is made, where Python takes them when it is called: they must be the same ones."""
        given, hint = node.args, "Make it a @triton.jit function"
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
            self._refuse(node, "a `lambda` with other than plain parameters is not supported", hint)
        if any(isinstance(inner, ast.NamedExpr) for inner in walk(node.body)):
            self._refuse(node, "`:=` inside of a `lambda` is not supported", hint)
        assigned = [*_parameters(self._function), *_stored(self._function)]
        for name in sorted(_loaded(node.body) - {one.arg for one in (*given.posonlyargs, *given.args)}):
            if assigned.count(name) > 1:
                self._refuse(node, f"a `lambda` of {name}, which is assigned more than once, is not supported", hint)

    def _refuse(self, node: ast.AST, message: str, hint: str) -> None:
        error = Unsupported(message, hint=hint)
        error.place("", self._filename, getattr(node, "lineno", 0))
        raise error


class _Rewriter(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef, nodes: Sequence[ast.AST]) -> None:
        self._function = function
        self._parameters = _parameters(function)
        self._inner = {name for node in nodes if isinstance(node, ast.comprehension) for name in _stored(node)}
        self._locals = sorted({*self._parameters, *_stored_among(nodes)} - self._inner)
        self._count = 0
        self._rest: Sequence[ast.stmt] = ()  # What follows the statement in its block.
        self._loops: list[tuple[str, str]] = []  # Name and values of each loop that is open.

    def visit(self, node: ast.AST) -> Any:
        """Most nodes are names and numbers, which stay."""
        return node if type(node) in (ast.Name, ast.Constant) else super().visit(node)

    def local_names(self) -> set[str]:
        """Parameters, and all names that are assigned anywhere in the function."""
        return {*self._locals, *self._inner}

    def result(self) -> ast.FunctionDef:
        function = self._function
        unset = [name for name in self._locals if name not in self._parameters]
        body = self._block(function.body)
        start = [_assign_names(unset, "_bragg.UNSET")] if unset else []
        start.append(_statement("_frame = _bragg.Frame()"))
        end = [_statement("return _frame.finish()")]
        for node in start:
            _place(node, function.body[0])
        for node in end:
            _place(node, function.body[-1], width=0)
        function.body = [*start, *body, *end]
        function.returns = None
        for argument in walk(function.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return function

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements; those after one that may leave the block run only while a program is left."""
        result: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            self._rest = statements[index + 1 :]
            rewritten = self.visit(statement)
            result.extend(rewritten if isinstance(rewritten, list) else [rewritten])
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
            rest = statements[index + 1 :]
            if rest and isinstance(statement, ast.If | ast.For | ast.While | ast.With) and _leaves(statement):
                guard = ast.parse("if _bragg.is_anyone_left(): pass").body[0]
                assert isinstance(guard, ast.If)
                guard.body = self._block(rest)
                result.append(_place(guard, rest[0], deep=False))
                break
        return result

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"_{stem}{self._count}"

    def _names(self, *nodes: ast.AST) -> list[str]:
        """Local names that stand in the nodes; all of them when programs may leave from within."""
        if any(_jumps(node) for node in nodes):
            return self._locals
        return self._used(*nodes)

    def _used(self, *nodes: ast.AST) -> list[str]:
        """Local names that stand in the nodes."""
        used = set().union(*map(_loaded, nodes))
        return [name for name in self._locals if name in used]

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names = self._names(*node.body, *node.orelse)
        ways = [{name for child in way for name in _stored(child)} for way in (node.body, node.orelse)]
        me, values = self._name("branch"), _tuple(names)
        flags = tuple(name in ways[0] | ways[1] for name in names)
        is_whole = not any(_jumps(child) for child in (*node.body, *node.orelse))
        partly = tuple(name for name in names if is_whole and name in ways[0] ^ ways[1])
        test = self.visit(node.test)
        made = _statement(f"{me} = _bragg.Branch(None, {flags!r}, {tuple(names)!r}, {partly!r})")
        made.value.args[0] = test  # type: ignore[attr-defined]
        then = _compound(f"if {me}.then({values}):\n    {values} = {me}.values\n    {me}.done({values})")
        other = _compound(f"if {me}.otherwise():\n    {values} = {me}.values\n    {me}.done({values})")
        join = _statement(f"{values} = {me}.join()")
        compared = [
            _statement(f"{me}.compare({what!r}, {first}, {second})")
            for what, first, second in taken_names(node, self._locals, self._rest)
        ]
        if gives([*node.body, *node.orelse]):
            compared.append(_statement(f"{me}.promise(_frame)"))
        for part in (made, *compared):
            _place(part, node)
        for part in (then, other, join):
            _place(part, node, width=0)
        then.body[1:1] = self._block(node.body)
        other.body[1:1] = self._block(node.orelse)
        return [made, *compared, then, other, join]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names = self._names(node.target, *node.body)
        written = {name for child in (node.target, *node.body) for name in _stored(child)}
        me, values = self._name("loop"), _tuple(names)
        flags = tuple(name in written for name in names)
        assert isinstance(node.target, ast.Name)
        made = _statement(f"{me} = _bragg.Loop(None, {flags!r}, {names.index(node.target.id)}, {tuple(names)!r})")
        made.value.args[0] = self.visit(node.iter)  # type: ignore[attr-defined]
        loop = _compound(f"while {me}.more({values}):\n    {values} = {me}.values")
        join = _statement(f"{values} = {me}.join()")
        for part in (made, loop):
            _place(part, node)
        _place(join, node, width=0)
        loop.body.extend(self._loop_body(me, values, node.body))
        return [made, loop, join]

    def _loop_body(self, me: str, values: str, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        self._loops.append((me, values))
        rewritten = self._block(body)
        self._loops.pop()
        return rewritten

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        me, values = self._loops[-1]
        return _place(_statement(f"{me}.broken({values})"), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        me, values = self._loops[-1]
        return _place(_statement(f"{me}.continued({values})"), node)

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        """Regions that only say how to compile what is inside of them."""
        entered = [ast.copy_location(ast.Expr(self.visit(item.context_expr)), node) for item in node.items]
        return [*entered, *self._block(node.body)]

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = _helped("assigned", self.visit(node.value))
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names = self._names(node.test, *node.body)
        written = {name for child in (node.test, *node.body) for name in _stored(child)}
        me, values = self._name("loop"), _tuple(names)
        flags = tuple(name in written for name in names)
        made = _statement(f"{me} = _bragg.While({flags!r}, {tuple(names)!r})")
        text = (
            f"while {me}.more({values}):\n    {values} = {me}.values\n"
            f"    if {me}.goes_on(None, {values}):\n        {values} = {me}.values"
        )
        loop = _compound(text)
        join = _statement(f"{values} = {me}.join()")
        for part in (made, loop):
            _place(part, node)
        _place(join, node, width=0)
        inner = loop.body[1]
        assert isinstance(inner, ast.If)
        assert isinstance(inner.test, ast.Call)
        inner.test.args[0] = self.visit(node.test)
        inner.body.extend(self._loop_body(me, values, node.body))
        return [made, loop, join]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        given = _statement("_frame.give(_bragg.assigned(None))")
        if node.value is not None:
            given.value.args[0].args[0] = self.visit(node.value)  # type: ignore[attr-defined]
        return _place(given, node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        node.value = _helped("assigned", self.visit(node.value))
        return node

    def visit_List(self, node: ast.List) -> ast.expr:
        """Lists are tuples, as in Triton."""
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Tuple([self.visit(one) for one in node.elts], ast.Load()), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        return _helped("listed", node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        assert isinstance(node.target, ast.Name)
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(old, node.op, self.visit(node.value)), node)
        return ast.copy_location(ast.Assign([node.target], _helped("assigned", value)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return _place(ast.Pass(), node)
        is_constant, name = "constexpr" in ast.unparse(node.annotation), ast.unparse(node.target)
        value = _helped("constant_once" if is_constant else "assigned", self.visit(node.value))
        if is_constant:
            value.args += _call(f"_({name}, {name!r})", node.value).args
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`a and b and c`, from the right: a constant on the left may decide; else both sides are evaluated."""
        kind = "and" if isinstance(node.op, ast.And) else "or"
        return self._combined(kind, [self.visit(value) for value in node.values], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` is `a < b and b < c`, with one b."""
        operands = [self.visit(operand) for operand in (node.left, *node.comparators)]
        pairs: list[ast.expr] = []
        left = operands[0]
        for k, (operation, right) in enumerate(zip(node.ops, operands[1:], strict=True)):
            following = right
            if k + 1 < len(node.ops):
                held = self._name("middle")
                named = ast.copy_location(ast.Name(held, ast.Store()), right)
                following = ast.copy_location(ast.Name(held, ast.Load()), right)
                right = ast.copy_location(ast.NamedExpr(named, right), right)
            pairs.append(ast.copy_location(ast.Compare(left, [operation], [right]), node))
            left = following
        return self._combined("and", pairs, node)

    def _combined(self, kind: str, values: list[ast.expr], node: ast.expr) -> ast.expr:
        result: ast.expr = values[-1]
        for value in reversed(values[:-1]):
            held = self._name("side")
            text = f"{held} if _bragg.decides({kind!r}, ({held} := None)) else _bragg.combined({kind!r}, {held}, None)"
            choice = ast.parse(text, mode="eval").body
            assert isinstance(choice, ast.IfExp)
            _place(choice, node)
            choice.test.args[1].value = value  # type: ignore[attr-defined]
            choice.orelse.args[2] = result  # type: ignore[attr-defined]
            result = choice
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            return node
        call = _call("_bragg.negated(None)", node)
        call.args[0] = node.operand
        return call

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Both sides become functions of the names in them, called for the programs that choose them."""
        names = self._names(node.body, node.orelse)
        listed = ", ".join(names)
        sides = _tuple(taken_sides(node, names))
        text = f"_bragg.chosen(None, lambda {listed}: None, lambda {listed}: None, {_tuple(names)}, {sides})"
        call = _call(text, node)
        call.args[0] = self.visit(node.test)
        call.args[1].body = self.visit(node.body)  # type: ignore[attr-defined]
        call.args[2].body = self.visit(node.orelse)  # type: ignore[attr-defined]
        return call

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Values from around it become its first parameters."""
        own = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        names = [name for name in self._used(node.body) if name not in own]
        text = f"_bragg.closed(lambda {', '.join([*names, *own])}: None, {_tuple(names)})"
        call = _call(text, node)
        call.args[0].body = self.visit(node.body)  # type: ignore[attr-defined]
        return call

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        stated = _statement("_bragg.asserted(None, '')")
        _place(stated, node)
        stated.value.args[0] = self.visit(node.test)  # type: ignore[attr-defined]
        if node.msg is not None:
            stated.value.args[1] = self.visit(node.msg)  # type: ignore[attr-defined]
        return stated


def _parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg) if one]


def _loaded(node: ast.AST) -> set[str]:
    return {child.id for child in walk(node) if isinstance(child, ast.Name)}


def _stored(node: ast.AST) -> Iterator[str]:
    return _stored_among(walk(node))


def _stored_among(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for child in nodes:
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id


def _jumps(node: ast.AST) -> bool:
    """Programs may leave from within the node, if only for the next trip of a loop in it."""
    return any(isinstance(child, ast.Return | ast.Break | ast.Continue) for child in walk(node))


def _leaves(node: ast.AST) -> bool:
    """Programs may leave from within the node to somewhere outside of it."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    inner = [child for child in children(node) if _leaves(child)]
    if isinstance(node, ast.For | ast.While):
        return any(_returns(child) for child in inner)
    return bool(inner)


def _returns(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Return) for child in walk(node))


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0] if not text.startswith("return") else _return(text)


def _return(text: str) -> ast.stmt:
    function = ast.parse(f"def f():\n    {text}").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.body[0]


def _compound(text: str) -> ast.If | ast.While:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.If | ast.While)
    return statement


def _call(text: str, at: ast.expr) -> ast.Call:
    """A call in the place of an expression; what it is called with is put in by the caller."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    _place(call, at)
    return call


def _helped(helper: str, value: ast.expr) -> ast.Call:
    """An expression handed to a function of `bragg`."""
    owner = ast.Name("_bragg", ast.Load())
    function = ast.Attribute(owner, helper, ast.Load())
    call = ast.Call(function, [value], [])
    for node in (owner, function, call):
        _place(node, value, deep=False)
    return call


def _assign_names(names: Sequence[str], value: str) -> ast.stmt:
    return ast.parse(f"{' = '.join(names)} = {value}").body[0]


def _place(node: ast.AST, at: ast.AST, *, deep: bool = True, width: int = 1) -> ast.stmt:
    """Give new nodes the line of the old one. Those without width stand for no text: no debugger need stop there."""
    line, column = at.lineno, at.col_offset  # type: ignore[attr-defined]
    for child in walk(node) if deep else (node,):
        if child._attributes:  # `ast.copy_location` asks for each of them in turn, which takes ten times as long.
            child.lineno = child.end_lineno = line  # type: ignore[attr-defined]
            child.col_offset, child.end_col_offset = column, column + width  # type: ignore[attr-defined]
        if not deep and isinstance(child, ast.If):
            _place(child.test, at)
    return node  # type: ignore[return-value]
