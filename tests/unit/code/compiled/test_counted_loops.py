"""A `while` that counts is read as a `for`."""

from __future__ import annotations

from bragg.code.compiled.counted_loops import with_counted_loops
from bragg.code.compiled.operations import Module, read_module

TEXT = """module {
  tt.func public @f(%x: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    %start = arith.constant 0.0 : f32
    %last:2 = scf.while (%total = %start, %i = %zero) : (f32, i32) -> (f32, i32) {
      %more = arith.cmpi COMPARED : i32
      scf.condition(%more) %total, %i : f32, i32
    } do {
    ^bb0(%sum: f32, %at: i32):
      %place = tt.addptr %x, %at : !tt.ptr<f32>, i32
      %value = tt.load %place : !tt.ptr<f32>
      %next = arith.addf %sum, %value : f32
      %later = arith.STEP : i32
      scf.yield %next, %later : f32, i32
    }
    tt.store %x, %last#0 : !tt.ptr<f32>
    tt.return
  }
}
"""


def module(compared: str = "slt, %i, %n", step: str = "addi %at, %two") -> Module:
    text = TEXT.replace("COMPARED", compared).replace("STEP", step)
    return with_counted_loops(read_module(text, [()] * len(text.splitlines())))


def test_a_while_that_counts_up_to_a_bound_is_a_for() -> None:
    names = [each.name for each in module().operations]
    assert not {"scf.while", "scf.condition"} & {*names}
    row = names.index("scf.for")
    loop = module().operations[row]
    assert loop.operands == ("%i", "%zero", "%n", "%two", "%total", "%start")
    assert (loop.results, loop.block) == (("%last#0",), {"%total": "%start", "%i": "%zero"})


def test_its_body_uses_the_values_that_the_condition_hands_on() -> None:
    operations = module().operations
    row = next(at for at, each in enumerate(operations) if each.name == "scf.for")
    inside = {each.name: each.operands for each in operations if each.loop == row}
    assert inside["tt.addptr"] == ("%x", "%i")
    assert inside["arith.addf"] == ("%total", "%value")
    assert inside["scf.yield"] == ("%next",)


def test_a_while_that_does_not_count_stays_one() -> None:
    for other in (module("sgt, %i, %n"), module("slt, %n, %i"), module(step="muli %at, %two"), module("slt, %i, %i")):
        assert "scf.while" in [each.name for each in other.operations]
