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
import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bragg.code.python_nodes import fields_of, stored_names, walk
from bragg.debug.faults import Unsupported
from bragg.debug.flow.global_names import mark_refused
from bragg.debug.flow.rewriting.building import Place, changed
from bragg.debug.flow.rewriting.contents import contents_of
from bragg.debug.flow.ways import taken_names, taken_sides
from bragg.debug.versions import is_before

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


def rewrite(nodes: Sequence[ast.AST], filename: str, names: Mapping[str, Any] | None = None) -> ast.FunctionDef:
    """A function with its control flow made explicit.

    Args:
        nodes: All of the function, itself first, with the line numbers of its file; they are not changed.
        filename: For messages.
        names: Global names, to tell of those that Triton refuses; None: tell of none.

    Raises:
        Unsupported: A construct that Triton kernels do not have, or the engine does not know.
    """
    function = nodes[0]
    if names is not None or any(map(_minded, nodes)):
        function = _Minding().visit(copy.deepcopy(function))
        nodes = walk(function)
    assert isinstance(function, ast.FunctionDef)
    _Checker(function, filename).check(nodes)
    rewriter = _Rewriter(function, nodes)
    if names is not None:
        mark_refused(function, names, rewriter.local_names())
        rewriter = _Rewriter(function, walk(function))
    return rewriter.result()


class _Minding(ast.NodeTransformer):
    """Puts a fault in the place of a statement that Triton does not compile."""

    def visit(self, node: ast.AST) -> Any:
        """Replace one."""
        word = _minded(node)
        if not word:
            return self.generic_visit(node)
        place = Place(node)
        return place.done(place.helped("minded", place.constant(word)))


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


class _Rewriter:
    """Makes new nodes in the place of those that change; the others stay, and belong to both trees."""

    def __init__(self, function: ast.FunctionDef, nodes: Sequence[ast.AST]) -> None:
        self._function = function
        self._parameters = _parameters(function)
        self._inner = {name for node in nodes if isinstance(node, ast.comprehension) for name in _stored(node)}
        self._locals = sorted({*self._parameters, *stored_names(nodes)} - self._inner)
        self._contents = contents_of(function.body)
        self._count = 0
        self._rest: Sequence[ast.stmt] = ()  # What follows the statement in its block.
        self._loops: list[tuple[str, list[str]]] = []  # Name and values of each loop that is open.

    def local_names(self) -> set[str]:
        """Parameters, and all names that are assigned anywhere in the function."""
        return {*self._locals, *self._inner}

    def result(self) -> ast.FunctionDef:
        function, first, last = self._function, Place(self._function.body[0]), Place(self._function.body[-1], 0)
        unset = [name for name in self._locals if name not in self._parameters]
        start: list[ast.stmt] = [first.set_all(unset, first.attribute("_bragg", "UNSET"))] if unset else []
        start.append(first.set("_frame", first.helped("Frame")))
        end = last.given_back(last.call("_frame", "finish"))
        body = [*start, *self._block(function.body), end]
        return changed(function, body=body, args=_without_annotations(function.args), returns=None, decorator_list=[])

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements; those after one that may leave the block run only while a program is left."""
        result: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            rest = self._rest = statements[index + 1 :]
            made = _STATEMENTS.get(type(statement), _Rewriter._kept)(self, statement)
            result.extend(made)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
            if rest and isinstance(statement, ast.If | ast.For | ast.While | ast.With) and self._leaves(statement):
                guard = Place(rest[0])
                result.append(guard.branch(guard.helped("is_anyone_left"), self._block(rest)))
                break
        return result

    def _leaves(self, statement: ast.stmt) -> bool:
        return self._contents[statement].leaves

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"_{stem}{self._count}"

    def _names(self, statements: Sequence[ast.stmt], *others: ast.expr) -> list[str]:
        """Local names that stand in the nodes; all of them when programs may leave from within."""
        inside = [self._contents[one] for one in statements]
        if any(one.jumps for one in inside):
            return self._locals
        used = set().union(*(one.names for one in inside), *map(_loaded, others))
        return [name for name in self._locals if name in used]

    def _used(self, *nodes: ast.expr) -> list[str]:
        """Local names that stand in expressions."""
        return self._names((), *nodes)

    def _written(self, statements: Sequence[ast.stmt]) -> set[str]:
        return {name for one in statements for name in self._contents[one].stored}

    def _if(self, node: ast.If) -> list[ast.stmt]:
        both = (*node.body, *node.orelse)
        names, inside = self._names(both), [self._contents[one] for one in both]
        ways = [self._written(way) for way in (node.body, node.orelse)]
        flags = tuple(name in ways[0] | ways[1] for name in names)
        is_whole = not any(one.jumps for one in inside)
        partly = tuple(name for name in names if is_whole and name in ways[0] ^ ways[1])
        compared = taken_names(node, self._locals, self._rest, self._contents)
        me, at, out = self._name("branch"), Place(node), Place(node, 0)
        facts = map(at.constant, (flags, tuple(names), partly))
        result: list[ast.stmt] = [at.set(me, at.helped("Branch", self.visit(node.test), *facts))]
        for what, first, second in compared:
            sides = at.expression(first), at.expression(second)
            result.append(at.done(at.call(me, "compare", at.constant(what), *sides)))
        if any(one.gives for one in inside):
            result.append(at.done(at.call(me, "promise", at.name("_frame"))))
        for body, test in (
            (node.body, out.call(me, "then", out.names(names))),
            (node.orelse, out.call(me, "otherwise")),
        ):
            taken = out.set_each(names, out.attribute(me, "values"))
            done = out.done(out.call(me, "done", out.names(names)))
            result.append(out.branch(test, [taken, *self._block(body), done]))
        return [*result, out.set_each(names, out.call(me, "join"))]

    def _for(self, node: ast.For) -> list[ast.stmt]:
        assert isinstance(node.target, ast.Name)
        names = self._names(node.body, node.target)
        written = {node.target.id, *self._written(node.body)}
        me, at = self._name("loop"), Place(node)
        flags = tuple(name in written for name in names)
        facts = map(at.constant, (flags, names.index(node.target.id), tuple(names)))
        made = at.set(me, at.helped("Loop", self.visit(node.iter), *facts))
        body = [at.set_each(names, at.attribute(me, "values")), *self._loop_body(me, names, node.body)]
        return [made, at.loop(at.call(me, "more", at.names(names)), body), _joined(node, me, names)]

    def _loop_body(self, me: str, names: list[str], body: Sequence[ast.stmt]) -> list[ast.stmt]:
        self._loops.append((me, names))
        rewritten = self._block(body)
        self._loops.pop()
        return rewritten

    def _jump(self, node: ast.Break | ast.Continue) -> list[ast.stmt]:
        (me, names), at = self._loops[-1], Place(node)
        return [at.done(at.call(me, "broken" if isinstance(node, ast.Break) else "continued", at.names(names)))]

    def _with(self, node: ast.With) -> list[ast.stmt]:
        """Regions that only say how to compile what is inside of them."""
        entered = [ast.copy_location(ast.Expr(self.visit(item.context_expr)), node) for item in node.items]
        return [*entered, *self._block(node.body)]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        names = self._names(node.body, node.test)
        written = {*_stored(node.test), *self._written(node.body)}
        me, at = self._name("loop"), Place(node)
        flags = tuple(name in written for name in names)
        made = at.set(me, at.helped("While", at.constant(flags), at.constant(tuple(names))))
        taken = at.set_each(names, at.attribute(me, "values"))
        test = at.call(me, "goes_on", self.visit(node.test), at.names(names))
        body = [taken, at.branch(test, [taken, *self._loop_body(me, names, node.body)])]
        return [made, at.loop(at.call(me, "more", at.names(names)), body), _joined(node, me, names)]

    def _return(self, node: ast.Return) -> list[ast.stmt]:
        at = Place(node)
        value = at.constant(None) if node.value is None else self.visit(node.value)
        told = [at.done(at.call(me, "returned")) for me, _ in self._loops]
        return [*told, at.done(at.call("_frame", "give", at.helped("assigned", value)))]

    def _assign(self, node: ast.Assign) -> list[ast.stmt]:
        return [changed(node, value=_helped("assigned", self.visit(node.value)))]

    def _augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        assert isinstance(node.target, ast.Name)
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(old, node.op, self.visit(node.value)), node)
        return [ast.copy_location(ast.Assign([node.target], _helped("assigned", value)), node)]

    def _annotated(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return [ast.copy_location(ast.Pass(), node)]
        is_constant, name = "constexpr" in ast.unparse(node.annotation), ast.unparse(node.target)
        value = _helped("constant_once" if is_constant else "assigned", self.visit(node.value))
        if is_constant:
            at = Place(node.value)
            value.args += [at.expression(name), at.constant(name)]
        return [ast.copy_location(ast.Assign([node.target], value), node)]

    def _assert(self, node: ast.Assert) -> list[ast.stmt]:
        at = Place(node)
        message = at.constant("") if node.msg is None else self.visit(node.msg)
        return [at.done(at.helped("asserted", self.visit(node.test), message))]

    def _kept(self, node: ast.stmt) -> list[ast.stmt]:
        return [self._visited(node)]

    def visit(self, node: Any) -> ast.expr:
        """An expression as the engine evaluates it."""
        kind = type(node)
        is_plain = kind is ast.Name or kind is ast.Constant
        made: ast.expr = node if is_plain else _EXPRESSIONS.get(kind, _Rewriter._visited)(self, node)
        return made

    def _visited(self, node: Any) -> Any:
        """A node whose expressions are rewritten; itself where none changes."""
        fields: dict[str, Any] = {}
        for name in fields_of(node):
            old: Any = getattr(node, name, None)
            if type(old) is list:
                new: Any = [self.visit(one) if isinstance(one, ast.AST) else one for one in old]
                is_changed = any(map(operator.is_not, new, old))
            else:
                new = self.visit(old) if isinstance(old, ast.AST) else old
                is_changed = new is not old
            if is_changed:
                fields[name] = new
        return changed(node, **fields) if fields else node

    def _named(self, node: ast.NamedExpr) -> ast.expr:
        return changed(node, value=_helped("assigned", self.visit(node.value)))

    def _list(self, node: ast.List) -> ast.expr:
        """Lists are tuples, as in Triton."""
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Tuple([self.visit(one) for one in node.elts], ast.Load()), node)

    def _list_comprehension(self, node: ast.ListComp) -> ast.expr:
        return _helped("listed", self._visited(node))

    def _bool_op(self, node: ast.BoolOp) -> ast.expr:
        """`a and b and c`, from the right: a constant on the left may decide; else both sides are evaluated."""
        kind = "and" if isinstance(node.op, ast.And) else "or"
        return self._combined(kind, [self.visit(value) for value in node.values], node)

    def _compare(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` is `a < b and b < c`, with one b."""
        if len(node.ops) == 1:
            return self._visited(node)  # type: ignore[no-any-return]
        operands = [self.visit(operand) for operand in (node.left, *node.comparators)]
        pairs: list[ast.expr] = []
        left = operands[0]
        for k, (operation, right) in enumerate(zip(node.ops, operands[1:], strict=True)):
            following, at = right, Place(right)
            if k + 1 < len(node.ops):
                held = self._name("middle")
                following, right = at.name(held), at.named(held, right)
            pairs.append(ast.copy_location(ast.Compare(left, [operation], [right]), node))
            left = following
        return self._combined("and", pairs, node)

    def _combined(self, kind: str, values: list[ast.expr], node: ast.expr) -> ast.expr:
        """`held if _bragg.decides("and", (held := a)) else _bragg.combined("and", held, b)`."""
        result, at = values[-1], Place(node)
        for value in reversed(values[:-1]):
            held = self._name("side")
            decides = at.helped("decides", at.constant(kind), at.named(held, value))
            combined = at.helped("combined", at.constant(kind), at.name(held), result)
            result = at.choice(decides, at.name(held), combined)
        return result

    def _unary(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            return self._visited(node)  # type: ignore[no-any-return]
        return Place(node).helped("negated", self.visit(node.operand))

    def _choice(self, node: ast.IfExp) -> ast.expr:
        """Both sides become functions of the names in them, called for the programs that choose them."""
        names, at = self._used(node.body, node.orelse), Place(node)
        sides = ast.Tuple(list(map(at.expression, taken_sides(node, names))), ast.Load())
        ways = [at.function(names, self.visit(side)) for side in (node.body, node.orelse)]
        given = (at.names(names), ast.copy_location(sides, node))
        return at.helped("chosen", self.visit(node.test), *ways, *given)

    def _lambda(self, node: ast.Lambda) -> ast.expr:
        """Values from around it become its first parameters."""
        own = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        names, at = [name for name in self._used(node.body) if name not in own], Place(node)
        return at.helped("closed", at.function([*names, *own], self.visit(node.body)), at.names(names))


_STATEMENTS: dict[type, Callable[[_Rewriter, Any], list[ast.stmt]]] = {
    ast.If: _Rewriter._if,
    ast.For: _Rewriter._for,
    ast.While: _Rewriter._while,
    ast.With: _Rewriter._with,
    ast.Break: _Rewriter._jump,
    ast.Continue: _Rewriter._jump,
    ast.Return: _Rewriter._return,
    ast.Assign: _Rewriter._assign,
    ast.AugAssign: _Rewriter._augmented,
    ast.AnnAssign: _Rewriter._annotated,
    ast.Assert: _Rewriter._assert,
}
_EXPRESSIONS: dict[type, Callable[[_Rewriter, Any], Any]] = {
    ast.NamedExpr: _Rewriter._named,
    ast.List: _Rewriter._list,
    ast.ListComp: _Rewriter._list_comprehension,
    ast.BoolOp: _Rewriter._bool_op,
    ast.Compare: _Rewriter._compare,
    ast.UnaryOp: _Rewriter._unary,
    ast.IfExp: _Rewriter._choice,
    ast.Lambda: _Rewriter._lambda,
}


def _parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg) if one]


def _without_annotations(given: ast.arguments) -> ast.arguments:
    lists = {name: getattr(given, name) for name in ("posonlyargs", "args", "kwonlyargs")}
    plain = {name: [changed(one, annotation=None) for one in listed] for name, listed in lists.items()}
    single = {
        name: one and changed(one, annotation=None) for name, one in (("vararg", given.vararg), ("kwarg", given.kwarg))
    }
    return changed(given, **plain, **single)


def _loaded(node: ast.AST) -> set[str]:
    return {child.id for child in walk(node) if isinstance(child, ast.Name)}


def _stored(node: ast.AST) -> list[str]:
    return stored_names(walk(node))


def _joined(node: ast.stmt, me: str, names: list[str]) -> ast.stmt:
    out = Place(node, 0)
    return out.set_each(names, out.call(me, "join"))


def _helped(helper: str, value: ast.expr) -> ast.Call:
    """An expression handed to a function of `bragg`."""
    return Place(value).helped(helper, value)
