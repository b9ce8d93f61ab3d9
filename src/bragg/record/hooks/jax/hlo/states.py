"""What an optimized HLO module computes or copies though the program need not: a state of each such operation."""

from __future__ import annotations

import re

from bragg.grouping.hlo_names import (
    BATCHED_COND,
    BOTH_BRANCHES,
    COMPLEX,
    CONSTANT,
    COPIED,
    DOUBLE,
    JACOBIAN,
    PAIRWISE,
    VECTORS_UNUSED,
    ZEROS_AND_ONES,
    arguments_of,
)
from bragg.grouping.hlo_program import NOWHERE, HloPlace, HloState
from bragg.record.hooks.jax.hlo.aggregations import aggregation_states
from bragg.record.hooks.jax.hlo.choices import choice_states
from bragg.record.hooks.jax.hlo.demand import shuffle_states, unused_states
from bragg.record.hooks.jax.hlo.factors import factor_states
from bragg.record.hooks.jax.hlo.graph import LONG, HloGraph
from bragg.record.hooks.jax.hlo.jacobians import jacobian_states, product_states
from bragg.record.hooks.jax.hlo.loops import loop_states
from bragg.record.hooks.jax.hlo.products import adds_up_differences, multiplies_zeros_and_ones
from bragg.record.hooks.jax.hlo.promotions import promotion_states
from bragg.record.hooks.jax.hlo.repeats import repeat_states
from bragg.record.hooks.jax.hlo.sums import sum_states
from bragg.record.hooks.jax.hlo.tables import table_states
from bragg.record.hooks.jax.hlo.turns import turn_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bragg.record.hooks.jax.hlo.flow import HloFlow
    from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
    from bragg.record.hooks.jax.hlo.places import Places


_DONATED = re.compile(r"\}: \((\d+),")
_LAID_OUT = re.compile(r" = \(?([a-z]\w*\[[\d,]*\])(\{[^}]*\})?")
# Both branches of a `cond` under `vmap`, and what chooses between their results: at its line.
_BATCHED = re.compile(rf'op_name="([^"]*\b{BATCHED_COND}\b)')
_CHOICE = re.compile(rf'op_name="([^"]*\b{BATCHED_COND})\)*/select_n"')
_SINGULAR = re.compile(r'op_name="(?:[^"]*/)?svd"')  # JAX has no call for eigenvalues alone
_OF_VALUES = re.compile(r"\bcompute_uv = false\b|\bmode = 78\b")  # of CUDA's libraries, of LAPACK: "N"
_PRODUCT = re.compile(r'op_name="(?:[^"]*/)?dot_general"')
_FILLS = ("broadcast", "iota", "constant")  # which a program cannot do without
_LEAST_ELEMENTS = 1 << 10


def states_in(module: HloModule, flow: HloFlow, places: Places) -> dict[str, HloState]:
    """States by name of operation; most have none."""
    found: dict[str, HloState] = {}
    batched = _batched_conds(module, places)
    only = next(iter(batched.values())) if len(set(batched.values())) == 1 else NOWHERE
    for computation, rows in module.executed():
        for each in rows:
            if told := _state(module, flow, computation, each):
                found[each.name] = HloState(told, places.read(each.line).place)
            elif batched and (cond := _BATCHED.search(each.line)) and not _CHOICE.search(each.line):
                found[each.name] = HloState(BOTH_BRANCHES, batched.get(cond[1], only))
    whole = loop_states(module, places) | jacobian_states(module)
    of_values = _of_values(module, places) if _is_worth_a_look(module) else {}
    of_some = {name: state for name, state in of_values.items() if arguments_of(state.name)}
    of_all = {name: state for name, state in of_values.items() if name not in of_some}
    # What comes first holds for some runs alone, or says less.
    return of_some | _doubles(module, places) | of_all | found | whole | dict(_copied(module, flow, places))


def _of_values(module: HloModule, places: Places) -> dict[str, HloState]:
    entry = HloGraph(module, module.entry)
    turns = [HloGraph(module, body) for body, (_, call) in module.callers.items() if call.code == "while"]
    outer = {graph.computation: graph for graph in (entry, *turns)}
    for graph in turns:
        computation, loop = module.callers[graph.computation]
        if computation in outer:
            graph.begin_after(outer[computation], loop)
    found = repeat_states(module, entry, turns, places)  # which hold for some arguments
    for graph in (entry, *turns):
        found |= promotion_states(graph, places)
    found |= unused_states(module, entry, turns, places) | turn_states(module, turns, places)
    for graph in (entry, *turns):
        found |= sum_states(graph, places) | factor_states(graph, places) | table_states(graph, places)
        found |= shuffle_states(graph, places) | aggregation_states(graph, places)
        found |= choice_states(module, graph, places)
    return found | product_states(module, (entry, *turns))


def _is_worth_a_look(module: HloModule) -> bool:
    """Whether it has something long, or several arguments, of which some may stay the same."""
    return module.header.partition("->")[0].count("[") > 1 or any(
        each.code in LONG for rows in module.computations.values() for each in rows
    )


def _doubles(module: HloModule, places: Places) -> dict[str, HloState]:
    """Operations that make large arrays of 64-bit floating point."""
    rows = [each for _, rows in module.executed() for each in rows if each.type in ("f64", "c128")]
    return {each.name: HloState(DOUBLE, places.read(each.line).place) for each in rows if each.size >= _LEAST_ELEMENTS}


def _batched_conds(module: HloModule, places: Places) -> dict[str, HloPlace]:
    """Lines of conditions under `vmap`, by what the names of their operations begin with."""
    selects = (each for rows in module.computations.values() for each in rows if each.code == "select")
    found = ((_CHOICE.search(each.line), each) for each in selects)
    return {cond[1]: places.read(each.line).place for cond, each in found if cond}


def _state(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> str:
    judge = _JUDGES.get(each.code)
    return judge(module, flow, computation, each) if judge else ""


def _of_transform(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> str:
    if "fft_type=FFT" in each.line:
        made = flow.made(computation, each.operand)
        is_real = made is not None and made.code in ("convert", "complex") and _is_of_real(module, flow, made)
    else:
        is_real = "fft_type=IFFT" in each.line and bool(flow.uses(computation, each, ("real",)))
    return COMPLEX if is_real else ""


def _is_of_real(module: HloModule, flow: HloFlow, made: Instruction) -> bool:
    """Whether complex numbers are made of real ones alone."""
    computation = flow.computation_of(made)
    if made.code == "convert":
        return flow.type_of(computation, made.operand).startswith("f")
    imaginary = flow.made(computation, made.operands[-1])
    while imaginary is not None and imaginary.code == "broadcast":
        imaginary = flow.made(computation, imaginary.operand)
    return imaginary is not None and imaginary.code == "constant" and "constant(0)" in imaginary.line


def _of_product(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> str:
    if JACOBIAN not in each.line and multiplies_zeros_and_ones(module, flow, computation, each):
        return ZEROS_AND_ONES
    return ""


def _of_call(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> str:
    if _SINGULAR.search(each.line) and not _OF_VALUES.search(each.line):
        matrix = len(flow.shape_of(computation, each.operand))
        used = [len(each.sizes[at]) for at in flow.elements(computation, each) if at < len(each.sizes)]
        return VECTORS_UNUSED if used and max(used) < matrix else ""
    return _of_product(module, flow, computation, each) if _PRODUCT.search(each.line) else ""


def _of_fusion(module: HloModule, flow: HloFlow, computation: str, each: Instruction) -> str:
    if computation == module.entry and each.size >= _LEAST_ELEMENTS and flow.is_constant(computation, each):
        made = flow.made(computation, each.name)
        return "" if made is not None and made.code in _FILLS else CONSTANT
    if adds_up_differences(module, flow, each):
        return PAIRWISE
    return _of_product(module, flow, computation, each) if "kind=kCustom" in each.line else ""


_JUDGES: dict[str, Callable[[HloModule, HloFlow, str, Instruction], str]] = {
    "fft": _of_transform,
    "dot": _of_product,
    "custom-call": _of_call,
    "fusion": _of_fusion,
}


def _copied(module: HloModule, flow: HloFlow, places: Places) -> Iterator[tuple[str, HloState]]:
    """Copies of arguments that the program writes to, and returns, but was not given for good."""
    rows = module.computations.get(module.entry, [])
    donated = {int(each) for each in _DONATED.findall(module.header.partition("entry_computation_layout")[0])}
    returned = module.header.partition("->")[2]
    given = {each.name: each for each in rows if each.code == "parameter" and each.position not in donated}
    for each in rows:
        argument = given.get(each.operand) if each.code in ("copy", "copy-start") else None
        if argument is None or argument.size < _LEAST_ELEMENTS:
            continue
        shape = _LAID_OUT.search(argument.line)
        if shape and shape[1] in returned and shape[0].strip(" =(") in each.line:
            name = places.read(argument.line).op_name or argument.name
            yield each.name, HloState(f"{COPIED} {name}", _place_of_use(module, flow, places, each))


def _place_of_use(module: HloModule, flow: HloFlow, places: Places, copy: Instruction) -> HloPlace:
    """The first line that what uses a copy comes from: XLA's copies have none."""
    seen, names = set[str](), [copy.name]
    while names:
        users = [each for name in names for each in flow.users(module.entry, name) if each.name not in seen]
        for each in users:
            if (place := places.read(each.line).place) != NOWHERE:
                return place
        seen.update(each.name for each in users)
        names = [each.name for each in users]
    return NOWHERE
