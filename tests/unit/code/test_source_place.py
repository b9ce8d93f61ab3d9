from __future__ import annotations

from bragg.code.source_place import SourcePlace, function_spans, is_library, name_functions, user_place

STANDARD = "/site-packages/triton/language/standard.py"
TEXT = """\
import triton

@triton.jit
def helper(x):
    return x * 2

def kernel():
    def inner():
        return 1
    return helper(inner())
"""


def test_a_function_begins_at_its_decorator_and_outer_ones_come_first() -> None:
    assert function_spans(TEXT) == ((3, 5, "helper"), (7, 10, "kernel"), (8, 9, "inner"))


def test_text_that_is_no_python_has_no_functions() -> None:
    assert function_spans("__global__ void k() {}") == ()
    assert function_spans("\0") == ()


def test_what_python_warns_of_in_the_source_is_not_said_again() -> None:
    assert function_spans("def f():\n    return '\\d'\n") == ((1, 2, "f"),)


def test_the_innermost_function_gives_a_place_its_name() -> None:
    chain = (
        SourcePlace("a.py", 9),
        SourcePlace("a.py", 10),
        SourcePlace("a.py", 1),
        SourcePlace("b.cu", 9),
        SourcePlace("a.py", 5, 0, "known"),
    )
    ((*named,),) = name_functions([chain], {"a.py": TEXT})
    assert [place.function for place in named] == ["inner", "kernel", "", "", "known"]


def test_code_of_triton_belongs_to_the_line_that_calls_it() -> None:
    assert is_library(STANDARD)
    assert not is_library("/home/me/triton_kernels.py")
    own = SourcePlace("/home/me/k.py", 7)
    assert user_place((SourcePlace(STANDARD, 191), own, SourcePlace("/home/me/k.py", 16))) == own
    assert user_place((SourcePlace(STANDARD, 191),)) == SourcePlace(STANDARD, 191)
    assert user_place(()) is None
