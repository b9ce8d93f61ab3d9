"""Texts are parts of what JAX 0.11.2 and 0.4.30 print."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bragg.grouping.hlo_program import NOWHERE, HloOperation, HloPlace
from bragg.record.hooks.jax.hlo.text import operations_in

TABLES = """\
HloModule jit_a, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

FileNames
1 "/home/me/train.py"
2 "/env/lib/python3.11/site-packages/flax/linear.py"

FunctionNames
1 "<module>"
2 "Dense"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=2 end_column=31}
2 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=8 end_column=12}
3 {file_name_id=2 function_name_id=2 line=4 end_line=4 column=8 end_column=12}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}


%fused_computation (param_0.2: f32[8]) -> f32[8] {
  %param_0.2 = f32[8]{0} parameter(0)
  %sin.0 = f32[8]{0} sine(%param_0.2), metadata={op_name="jit(a)/layer/sin" stack_frame_id=3}
  %constant.1 = f32[] constant(2)
  ROOT %mul.0 = f32[8]{0} multiply(%sin.0, %broadcast.1), metadata={op_name="jit(a)/mul" stack_frame_id=2}
}

%unnamed_computation (param_0.3: f32[8]) -> f32[8] {
  %sin.1 = f32[8]{0} sine(%param_0.3), metadata={op_name="jit(a)/layer/sin" stack_frame_id=3}
  ROOT %convert.1 = f32[8]{0} convert(%sin.1), metadata={op_name="x"}
}

%body.1 (param.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %add.7 = s32[] add(%a, %b), metadata={op_name="jit(a)/while/body/add" stack_frame_id=1}
}

ENTRY %main.1 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), metadata={op_name="x"}
  %fusion = f32[8]{0} fusion(%x.1), calls=%fused_computation, metadata={op_name="jit(a)/mul" stack_frame_id=2}
  %fusion.1 = f32[8]{0} fusion(%x.1), kind=kLoop, calls=%unnamed_computation
  %while.1 = (s32[], f32[8]{0}) while(%tuple), condition=%cond.1, body=%body.1, metadata={op_name="jit(a)/while"}
  ROOT %copy.1 = f32[8]{0} copy(%fusion)
}
"""

OLD = """\
HloModule jit_f, is_scheduled=true

ENTRY %main.400 (Arg_0.1: f32[64,64]) -> f32[64,64] {
  %dot.43 = f32[32,64]{1,0} dot(f32[32,64]{1,0} %Arg_30.31, f32[64,64]{1,0} %Arg_0.1), lhs_contracting_dims={1}, \
metadata={op_name="jit(f)/jit(main)/jvp(b \\"0\\")/dot_general[precision=None]" source_file="/home/me/old.py" \
source_line=5}
}
"""

TRAIN = "/home/me/train.py"


def is_library(file: str) -> bool:
    return "site-packages" in file


def test_operations_have_the_innermost_line_of_the_user() -> None:
    assert operations_in(TABLES, is_library) == {
        "fusion": HloOperation("jit(a)/mul", HloPlace(TRAIN, 7)),
        "fusion.1": HloOperation("jit(a)/layer/sin", HloPlace(TRAIN, 7)),
        "add.7": HloOperation("jit(a)/while/body/add", HloPlace(TRAIN, 9)),
        "while.1": HloOperation("jit(a)/while", NOWHERE),
        "copy.1": HloOperation("", NOWHERE),
    }


def test_a_library_has_its_line_where_no_user_called_it() -> None:
    found = operations_in(TABLES, lambda _: True)
    assert found["fusion.1"].place == HloPlace("/env/lib/python3.11/site-packages/flax/linear.py", 4)


def test_parents_may_be_printed_as_they_are() -> None:
    exact = TABLES
    for frame in (1, 2, 3):
        exact = exact.replace(
            f"location_id={frame} parent_frame_id={frame}", f"location_id={frame} parent_frame_id={frame - 1}"
        )
    assert operations_in(exact, is_library) == operations_in(TABLES, is_library)


def test_lines_may_stand_at_the_operation() -> None:
    assert operations_in(OLD, is_library) == {
        "dot.43": HloOperation(
            'jit(f)/jit(main)/jvp(b "0")/dot_general[precision=None]', HloPlace("/home/me/old.py", 5)
        )
    }


def test_names_are_read_as_they_were_before_xla_escaped_them() -> None:
    text = TABLES.replace("jit(a)/mul", r"jit(a)/\303\274 \"\n\\\377/mul").replace("train.py", r"tr\303\244in.py")
    found = operations_in(text, is_library)["fusion"]
    assert found.op_name == 'jit(a)/ü "\n\\\ufffd/mul'
    assert found.place.file.endswith("träin.py")


@given(st.integers(0, len(TABLES)), st.text(alphabet='"{}=%(,\n 1a', max_size=8))
def test_damaged_texts_are_read_without_harm(position: int, put: str) -> None:
    for text in (TABLES[:position] + put + TABLES[position:], TABLES[:position] + put):
        for operation in operations_in(text, is_library).values():
            assert operation.place.line >= 0
