"""Walks over syntax trees."""

from __future__ import annotations

import ast

from bragg.code.python_nodes import children, parts_of, walk

TEXT = """
def f(a: int, *rest, b=[1, -2]):
    for i in range(a):
        if not (a < i <= 3 and b):
            continue
        x, y = [j for j in rest if j], f"{a:>{b}}"
        break
    return lambda c: {c: a[1:2], **b}
"""


def test_walk_visits_what_ast_visits_apart_from_contexts_and_operators() -> None:
    tree = ast.parse(TEXT)
    bare = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    assert walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, bare)]


def test_children_keep_statements_without_fields() -> None:
    loop = ast.parse("while a:\n    pass\n    break").body[0]
    assert [type(node) for node in children(loop)] == [ast.Name, ast.Pass, ast.Break]


def test_parts_are_those_of_one_kind_the_upper_ones_first() -> None:
    calls = parts_of(ast.parse("f(g(1), h)(2)"), ast.Call)
    assert [ast.unparse(each) for each in calls] == ["f(g(1), h)(2)", "f(g(1), h)", "g(1)"]
