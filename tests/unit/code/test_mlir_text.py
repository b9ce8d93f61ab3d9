from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bragg.code.mlir_text import places_of_mlir
from bragg.code.source_place import MAX_CALLS, SourcePlace

MODULE = """\
#blocked = #ttg.blocked<{sizePerThread = [4]}>
#loc = loc("/k/a.py":12:1)
#loc1 = loc(unknown)
#loc2 = loc("/k/a.py":16:14)
#loc3 = loc("/lib/standard.py":191:40)
#loc4 = loc("x"(#loc))
#loc5 = loc(callsite(#loc3 at #loc2))
#loc6 = loc("values"(#loc5))
#loc7 = loc(fused[#loc1, #loc2])
#loc8 = loc(callsite(#loc6 at #loc))
#loc9 = loc(fused<"pass"(1, 2)>["/k/\\C3\\A4.py":3:4, #loc])
module attributes {a = "b (c"} {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) {
    %c = arith.constant dense<0.0> : tensor<4xf32> loc(#loc1)
    %0 = tt.load %x : !tt.ptr<f32> loc(#loc2)
    %1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc1 at #loc2)), %b: f32 loc(#loc1)):
      %2 = arith.addf %a, %b : f32 loc(#loc5)
    }) : (tensor<4xf32>) -> f32 loc(#loc8)
    scf.if %1 {
      tt.print "loc(#loc2)" loc(#loc7)
    } else {
      tt.store %x, %1 loc(#loc9)
    } loc(#loc4)
    tt.return loc("/k/a.py":20:5)
  } loc(#loc)
} loc(#loc)
"""
OWN, CALL, INNER = (
    SourcePlace("/k/a.py", 12, 1),
    SourcePlace("/k/a.py", 16, 14),
    SourcePlace("/lib/standard.py", 191, 40),
)


def place_of(text: str) -> tuple[SourcePlace, ...]:
    """The places of the line that contains a text."""
    places = places_of_mlir(MODULE)
    (number,) = [number for number, line in enumerate(MODULE.splitlines()) if text in line]
    return places[number]


def test_an_operation_has_the_place_at_its_end() -> None:
    assert place_of("tt.load") == (CALL,)
    assert place_of("tt.return") == (SourcePlace("/k/a.py", 20, 5),)


def test_calls_lead_from_the_inlined_code_to_the_caller() -> None:
    assert place_of("arith.addf") == (INNER, CALL)
    assert place_of('"tt.reduce"') == (INNER, CALL, OWN)


def test_an_operation_with_regions_has_its_place_where_it_begins() -> None:
    assert place_of("module attributes") == place_of("tt.func") == place_of("scf.if") == (OWN,)
    assert place_of("} else {") == place_of("^bb0") == ()


def test_the_first_known_one_of_fused_places_counts() -> None:
    assert place_of("tt.print") == (CALL,)
    assert place_of("tt.store") == (SourcePlace("/k/ä.py", 3, 4),)


def test_an_unknown_place_is_none() -> None:
    assert place_of("arith.constant") == ()
    assert place_of("#blocked") == ()


def test_aliases_that_lead_round_in_a_circle_end() -> None:
    circle = '#loc = loc("a"(#loc1))\n#loc1 = loc(callsite(#loc at #loc))\ntt.return loc(#loc)'
    assert places_of_mlir(circle) == [(), (), ()]


def test_calls_that_double_at_each_level_do_not_exhaust_memory() -> None:
    levels = "".join(f"#loc{level + 1} = loc(callsite(#loc{level} at #loc{level}))\n" for level in range(90))
    (*_, chain) = places_of_mlir(f'#loc0 = loc("a":1:1)\n{levels}tt.return loc(#loc90)')
    assert len(chain) <= MAX_CALLS


def test_brackets_that_nest_too_deep_end() -> None:
    assert len(places_of_mlir(f"tt.return loc({'callsite(' * 5000}{')' * 5000})")) == 1


@given(st.data())
def test_damaged_text_has_a_chain_for_each_line(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(MODULE)))
    end = data.draw(st.integers(begin, len(MODULE)))
    junk = data.draw(st.text('()[]{}"#loc:atcallsite \n\\0', max_size=12))
    text = MODULE[:begin] + junk + MODULE[end:]
    assert len(places_of_mlir(text)) == len(text.splitlines())
