"""Facts of a kernel from TTIR: what its author wrote, before a compiler chose how."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from bragg.code.compiled.comparisons import comparisons
from bragg.code.compiled.masked_loops import masked_loops
from bragg.code.compiled.operations import LOOPS, PURE_EXTERN, Module, Operation, place_of_chain, tile_of
from bragg.code.compiled.passes import repeated_passes, rewritten
from bragg.code.compiled.program_order import program_order
from bragg.code.compiled.tile_dataflow import TileDataflow
from bragg.code.compiled.values import QUOTIENTS, REMAINDERS, UNKNOWN, Value, values_of
from bragg.code.source_place import CallChain
from bragg.model import Place
from bragg.model.kernels.compiled import (
    Access,
    Atomic,
    Comparison,
    Dot,
    Loop,
    MaskedLoop,
    ProgramOrder,
    RepeatedPass,
    SlowOperation,
)

_LOADS = ("tt.load", "tt.descriptor_load", "tt.experimental_descriptor_load", "tt.descriptor_gather")
_DIVISIONS = {
    "arith.divsi": "integer division",
    "arith.divui": "integer division",
    "arith.remsi": "remainder",
    "arith.remui": "remainder",
    "arith.divf": "division",
}
# Each is dozens of instructions; exponentials, logarithms and roots are one each and a few around it.
_FUNCTIONS = re.compile(r"math\.(?:sin|cos|tan|tanh|powf|fpowi|atan|atan2|acos|asin|sinh|cosh|cbrt|erfc?)$")
# Neither writes memory, except by a store whose address is known, nor waits for other programs.
_LEAVES_MEMORY = re.compile(
    r"arith\.|math\.|scf\.(?:yield|if|for)$|cf\.|tt\.(?!atomic|call|extern|elementwise_inline|descriptor|experimental)"
)
# What a model asks for once for each element: nothing cheaper is the same.
_ACTIVATIONS = ("tanh", "erf", "erfc")
_BARRIERS = ("gpu.barrier", "ttg.barrier")
_SYMBOL = re.compile(r'symbol = "(?:__nv_)?(\w+)"')
_PRECISION = re.compile(r"inputPrecision = (\w+)")
_SINGLE = re.compile(r" : !tt\.ptr<(?P<is_float>b?f)?i?\d")
_GATHERS = re.compile(r"tt\.atomic_rmw (?:f?add|f?max|f?min|umax|umin|and|or|xor),")
_ORDER = re.compile(r"arith\.cmpi [su][lg][te],")
# In place of what a mask drops: 0, -inf of 32 and 16 bits, or -1e3 and less.
_MASKED = re.compile(r"arith\.constant (?:dense<)?(?:0\.0+e\+00|0xF[CF]\w*|-\d\.\d+e\+(?:0[3-9]|[1-9]\d))>? :")
_POWERS = ("powf", "pow", "powif", "fpowi")
_NUMBER = re.compile(r"arith\.constant (?:dense<)?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)>? :")
_WHOLE_POWER = "whole power"


def _leaves_memory(operation: Operation) -> bool:
    name = operation.name
    return name in _BARRIERS or (_LEAVES_MEMORY.match(name) is not None and name != "tt.store")


class TileProgram:
    """Facts of a module of TTIR.

    Args:
        module: It.
        sizes: Whole numbers that a launch passed, by argument; those that are known.
    """

    def __init__(self, module: Module, sizes: Mapping[str, int]) -> None:
        self._module = module
        self._values = values_of(module)
        has_quotients = any(each.name in (*QUOTIENTS, *REMAINDERS) for each in module.operations)
        self._of_most = values_of(module, of_most=True) if has_quotients else self._values
        self._flow = TileDataflow(module, sizes)
        self._unpromised = {
            argument.name
            for argument in module.arguments
            if argument.divisibility == 1 and ("ptr" in argument.type or re.fullmatch(r"i\d+", argument.type))
        }

    def accesses(self) -> Iterator[tuple[CallChain, Access]]:
        """Loads and stores of tiles, with all of where they come from."""
        for operation in self._named("tt.load", "tt.store"):
            types = operation.text.rpartition(" : ")[2]
            tile = tile_of(types)
            if tile is None or "!tt.ptr" not in types or not operation.operands:
                continue
            address = self._value(operation, 0)
            strides = _of_wide_dimensions(address, tile.shape)
            masks = operation.operands[2 if operation.name == "tt.store" else 1 :][:1]
            mask = self._values.get(masks[0], UNKNOWN) if masks else Value()
            yield (
                operation.chain,
                Access(
                    place=place_of_chain(operation.chain),
                    is_store=operation.name == "tt.store",
                    tensor=next(iter(tensors)) if len(tensors := self._tensors(operation)) == 1 else "",
                    in_loop=operation.depth > 0,
                    element=tile.element,
                    element_bytes=tile.element_bytes,
                    elements=tile.elements,
                    programs=tuple(found for each in masks for found in self._flow.programs_within(each)),
                    needed=tile.elements // math.prod(map(self._flow.excess, masks)),
                    strides=strides,
                    usual_strides=_of_wide_dimensions(self._of_most.get(operation.operands[0], UNKNOWN), tile.shape),
                    run=_run(strides, [size for size in tile.shape if size > 1]),
                    of_address=self._promised_nothing(address),
                    of_mask=self._promised_nothing(mask),
                    is_repeated=max(address.turns, mask.turns) < operation.depth and self._is_unchanged(operation),
                    times=self._flow.times(operation),
                ),
            )

    def dots(self) -> Iterator[Dot]:
        """Products of tiles."""
        for operation in self._named("tt.dot", "tt.dot_scaled"):
            left, right = tile_of(operation.text), tile_of(operation.text, 1)
            if left is None or right is None or len(left.shape) < 2:
                continue
            precision = _PRECISION.search(operation.text)
            operands = [
                self._flow.unscaled(name, summed) for name, summed in zip(operation.operands[:2], (-1, -2), strict=True)
            ]
            narrow = [found for name in operands if (found := self._flow.widened_from(name))]
            is_widened = all(self._flow.widened_from(each) or self._flow.is_of_product(each) for each in operands)
            yield Dot(
                place_of_chain(operation.chain),
                operation.depth > 0,
                left.shape[-2],
                right.shape[-1],
                left.shape[-1],
                left.element,
                precision[1] if precision else "ieee",
                max(narrow, key=lambda each: each.endswith("f16")) if narrow and is_widened else "",
            )

    def products_by_sums(self) -> Iterator[Dot]:
        """Products of tiles that are written as a sum over products of their elements."""
        for row, operation in enumerate(self._module.operations):
            sizes = self._flow.factors_of_sum(row) if operation.name == "tt.reduce" else None
            tile = tile_of(operation.text)
            if sizes and tile:
                yield Dot(place_of_chain(operation.chain), operation.depth > 0, *sizes, tile.element, "ieee")
        for operation in self._named("arith.addf"):
            outer, tile = self._flow.is_outer_sum(operation) if operation.depth else None, tile_of(operation.text)
            if outer and tile:
                yield Dot(place_of_chain(operation.chain), True, *outer, 1, tile.element, "ieee")

    def loops(self) -> Iterator[tuple[CallChain, Loop]]:
        """Loops with loads of tiles directly in them."""
        for row, operation in enumerate(self._module.operations):
            if operation.name not in LOOPS:
                continue
            inside = [each for each in self._module.operations[row + 1 :] if each.loop == row]
            loads = [each for each in inside if each.name in _LOADS and "tensor<" in each.text]
            if loads:
                n_dots = sum(each.name in ("tt.dot", "tt.dot_scaled") for each in inside)
                yield (
                    operation.chain,
                    Loop(
                        place_of_chain(operation.chain),
                        len(loads),
                        n_dots,
                        axes=self._flow.axes(row),
                        turns=self._flow.turns(operation),
                        step=self._flow.number(operation.operands[3]) if operation.name == "scf.for" else None,
                        is_of_earlier=not n_dots and self._adds_up_earlier(operation, inside),
                    ),
                )

    def _adds_up_earlier(self, loop: Operation, inside: list[Operation]) -> bool:
        """Whether the number of the program ends a loop, and says nothing else in it but which sum it is."""
        loads = [each for each in inside if each.name == "tt.load"]
        return (
            loop.name == "scf.for"
            and self._flow.uses_program(loop.operands[2:3])
            and not self._flow.uses_program(loop.operands[1:2])
            and not self._flow.is_loaded(loop.operands[2])
            and all(each.name == "scf.yield" or _LEAVES_MEMORY.match(each.name) for each in inside)
            and not any(each.name == "tt.store" for each in inside)
            and all(self._module.is_only_carried(each) for each in loads)
            and not any(self._value(each, at).is_per_program for each in loads for at in range(len(each.operands)))
        )

    def slow(self) -> Iterator[SlowOperation]:
        """Costly functions and integer divisions of tiles, and divisions in loops."""
        for operation in self._module.operations:
            tile = tile_of(operation.text)
            if tile is None or not operation.operands:
                continue
            place, in_loop = place_of_chain(operation.chain), operation.depth > 0
            if self._is_whole_power(operation):
                yield SlowOperation(place, _WHOLE_POWER, False, tile.elements, in_loop)
            elif operation.name in _DIVISIONS:
                divisor, is_float = self._value(operation, -1), operation.name == "arith.divf"
                # Of one value for all elements, the compiler divides once.
                if divisor.is_constant or self._is_same_for_all(operation):
                    continue
                if not is_float or (in_loop and not divisor.turns):
                    is_by_invariant = in_loop and not divisor.turns
                    by = tuple(each.name for each in self._module.arguments if each.name in divisor.names)
                    yield SlowOperation(place, _DIVISIONS[operation.name], is_by_invariant, tile.elements, in_loop, by)
            elif (name := self._function(operation)) and (in_loop or name not in _ACTIVATIONS):
                yield SlowOperation(place, name, False, tile.elements, in_loop)

    def atomics(self) -> Iterator[Atomic]:
        """Atomic operations."""
        for operation in self._named("tt.atomic_rmw"):
            address = self._value(operation, 0)
            tile = tile_of(operation.text.rpartition(" : ")[2])
            strides = address.stride_texts
            yield Atomic(
                place_of_chain(operation.chain),
                operation.depth > 0,
                tile.elements if tile else 1,
                True if set(strides) <= {"0"} else None if None in strides else False,
                True if address.is_per_program else None if _is_loaded(address) else False,
                self._is_repeated_sum(operation, address),
                self._flow.axes_of(operation.operands[0]),
                self._value(operation, 1).is_constant,
                self._flow.times(operation),
            )

    def locks(self) -> Iterator[Place]:
        """Waits for a lock that all programs take."""
        for operation in self._named("tt.atomic_cas"):
            address = operation.operands[0]
            is_wait = operation.depth > 0 and self._module.operations[operation.loop].name == "scf.while"
            if is_wait and not self._flow.axes_of(address) and not self._flow.is_loaded(address):
                yield place_of_chain(operation.chain)

    def masked_loops(self) -> Iterator[MaskedLoop]:
        """Loops of which a mask drops whole turns, although each program takes all of them."""
        return masked_loops(self._module, self._values, self._flow)

    def comparisons(self) -> Iterator[Comparison]:
        """Tiles whose elements are compared with many values, or with each other."""
        return comparisons(self._module, self._values, self._flow)

    def repeated_passes(self) -> Iterator[RepeatedPass]:
        """Tiles that several loops load, one after the other."""
        return repeated_passes(self._module, self._flow)

    def rewritten(self) -> Iterator[Place]:
        """Stores of tiles that a later loop loads, changes and stores again."""
        return rewritten(self._module, self._flow)

    def single_loads(self) -> Iterator[Place]:
        """Loads of one number, of another one in each turn or program, where no tile is.

        Whole numbers are often sizes and places of what comes next: those count that are only added up.
        """
        operations = self._module.operations
        for load in self._named("tt.load"):
            single = _SINGLE.search(load.text)
            if single is None or not (single["is_float"] or self._module.is_only_carried(load)):
                continue
            address = self._value(load, 0)
            around = [each for each in operations if each.loop == load.loop] if load.depth else operations
            moves = address.turns == load.depth if load.depth else address.is_per_program
            if moves and not any("tensor<" in each.text for each in around):
                yield place_of_chain(load.chain)

    def idle_barriers(self) -> Iterator[Place]:
        """Barriers in loops, where surely nothing is written before or in them that another thread could read."""
        operations = self._module.operations
        fenced = [row for row, each in enumerate(operations) if each.depth > 0 and each.name in _BARRIERS]
        last = max((row for row, each in enumerate(operations) if each.depth > 0), default=0)
        if all(map(_leaves_memory, operations[: last + 1])):
            yield from (place_of_chain(operations[row].chain) for row in fenced)

    def order(self) -> ProgramOrder | None:
        """In which order programs take the tiles of a product."""
        return program_order(self._module, self._flow)

    def prints(self) -> Iterator[Place]:
        """Calls that print, or check and print."""
        return (place_of_chain(each.chain) for each in self._named("tt.print", "tt.assert"))

    def _function(self, operation: Operation) -> str:
        if _FUNCTIONS.match(operation.name):
            return operation.name.removeprefix("math.")
        if operation.name != PURE_EXTERN or not (symbol := _SYMBOL.search(operation.text)):
            return ""
        name = symbol[1].removesuffix("f")
        return name if _FUNCTIONS.match(f"math.{name}") or name == "pow" else ""

    def _is_whole_power(self, operation: Operation) -> bool:
        """Whether it is a power whose exponent is written in the code, and whole."""
        if self._function(operation) not in _POWERS or len(operation.operands) < 2:
            return False
        exponent = next(iter(self._flow.parts_of(operation.operands[1], ("tt.splat",))), None)
        number = _NUMBER.search(exponent.text) if exponent and exponent.name == "arith.constant" else None
        return number is not None and float(number[1]).is_integer()

    def _is_repeated_sum(self, atomic: Operation, address: Value) -> bool:
        loop = self._module.operations[atomic.loop]
        is_used = any(set(atomic.results) & set(each.operands) for each in self._module.operations)
        is_sum = _GATHERS.search(atomic.text) is not None
        return atomic.depth > 0 and loop.name == "scf.for" and address.turns < atomic.depth and is_sum and not is_used

    def _is_unchanged(self, access: Operation) -> bool:
        """Whether an access's loop surely repeats it: of a load, leaves its tensor as it is, and waits for nobody."""
        if "isVolatile = true" in access.text:
            return False
        loop = self._module.operations[access.loop]
        inside = [each for each in self._module.operations if access.loop in self._loops_around(each)]
        if loop.name != "scf.for" or any(not _LEAVES_MEMORY.match(each.name) for each in inside):
            return False
        if access.name == "tt.store":
            return not access.branches
        load = access
        loaded = self._tensors(load)
        return bool(loaded) and not any(
            loaded & self._tensors(each) or not self._tensors(each) for each in inside if each.name == "tt.store"
        )

    def _loops_around(self, operation: Operation) -> Iterator[int]:
        row = operation.loop
        while row >= 0:
            yield row
            row = self._module.operations[row].loop

    def _tensors(self, operation: Operation) -> frozenset[str]:
        """Arguments that the address of a load or a store is computed from."""
        pointers = {each.name for each in self._module.arguments if "ptr" in each.type}
        return self._value(operation, 0).names & pointers

    def _is_same_for_all(self, operation: Operation) -> bool:
        return all(set(self._values.get(name, UNKNOWN).stride_texts) <= {"0"} for name in operation.operands)

    def _value(self, operation: Operation, at: int) -> Value:
        return self._values.get(operation.operands[at], UNKNOWN)

    def _promised_nothing(self, value: Value) -> tuple[str, ...]:
        """In the order of the kernel's arguments."""
        names = value.names & self._unpromised
        return tuple(argument.name for argument in self._module.arguments if argument.name in names)

    def _named(self, *names: str) -> Iterator[Operation]:
        return (operation for operation in self._module.operations if operation.name in names)


def _is_loaded(address: Value) -> bool:
    return address.uniform is None and None in address.strides


def _run(strides: tuple[str | None, ...], sizes: list[int]) -> int:
    """Elements that lie in memory one after the other, over all dimensions; 0: not known."""
    if None in strides or not strides:
        return 0
    run, rest = 1, dict(zip(strides, sizes, strict=True))
    while size := rest.pop(str(run), 0):
        run *= size
    return run


def _of_wide_dimensions(address: Value, shape: tuple[int, ...]) -> tuple[str | None, ...]:
    """Strides of the dimensions that have more than one element."""
    texts: Mapping[int, str | None] = dict(enumerate(address.stride_texts))
    return tuple(texts.get(at) for at, size in enumerate(shape) if size > 1)
