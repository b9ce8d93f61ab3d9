"""PyTorch: its compiler begins at no function that only passes calls of the program on.

It compiles one function after the other, and gives one up that was compiled eight times. A function that all modules
are called through would be given up in most programs, and name what is compiled of them.
"""

from __future__ import annotations

from types import CodeType

from bragg.record.hooks import methods
from bragg.record.hooks.torch import checkpoint, itt_operators, modules, regions, updates
from bragg.record.inside import regions as recorded_regions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any


MODULE = "torch._dynamo.eval_frame"


def begin_at_the_program(eval_frame: ModuleType) -> None:
    """Let these functions run as they are; the compiler continues with what they call."""
    for module in (checkpoint, methods, modules, recorded_regions, regions, itt_operators, updates):
        for code in _codes_of(module):
            eval_frame.skip_code(code)


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The code of all functions of a module, of its classes, and of those that they make."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    members = [member for value in own if isinstance(value, type) for member in vars(value).values()]
    for value in [*own, *members]:
        yield from _with_nested(getattr(value, "__code__", None))


def _with_nested(code: Any) -> Iterator[CodeType]:
    if isinstance(code, CodeType):
        yield code
        for constant in code.co_consts:
            yield from _with_nested(constant)
