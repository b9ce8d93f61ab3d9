"""Where the values of a tile program come from: what depends on the number of the program, products, and types."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from bragg.code.compiled.operations import Module, Operation, tile_of

_NARROW = re.compile(r"b?f16|f8\w*|i8")
_WIDENS = ("arith.extf", "arith.sitofp", "arith.uitofp", "tt.fp_to_fp")
# Their results differ from call to call, or in ways that are not followed.
_OPAQUE = re.compile(
    r"tt\.(?:get_program_id|atomic|call|extern|elementwise_inline|descriptor|experimental)|scf\.(?:if|while)"
)
_HIDDEN = re.compile(_OPAQUE.pattern.replace("get_program_id|", ""))
# What a loop may do whose work is compared between programs: it writes nothing and waits for nobody.
_PURE = re.compile(
    r"arith\.|math\.|scf\.(?:yield|for)$|tt\.(?!store|atomic|call|extern|elementwise_inline|descriptor|experimental)"
)
_BRANCHES = re.compile(r"scf\.(?:if|while)$|cf\.")
_BELOW = re.compile(r"arith\.cmpi [su]l([te]),")
_PROGRAMS = re.compile(r"tt\.get_num_programs ([xyz]) ")
_PROGRAM_OF = re.compile(r"tt\.get_program_id ([xyz]) ")
_RANGE = re.compile(r"tt\.make_range \{end = (\d+) : i32, start = 0 : i32\}")
_NUMBER = re.compile(r"arith\.constant (?:dense<)?(-?\d+)>? :")
_SAME_NUMBER = ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.trunci", "arith.index_cast")
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": operator.floordiv,
    "arith.ceildivsi": lambda left, right: -(-left // right),
    "arith.remsi": operator.mod,
    "arith.minsi": min,
    "arith.maxsi": max,
}
_DIVIDES = ("arith.divsi", "arith.ceildivsi", "arith.remsi")
_MOST_PROGRAMS = 256  # that a mean is taken over, evenly spaced
_LEAST_OF_PRODUCT = 16  # of each side of a tile that tl.dot multiplies
_SHAPES = ("tt.trans", "tt.reshape", "ttg.convert_layout")


def grid_key(axis: str) -> str:
    """What sizes of a launch call its programs along an axis: no argument can have this name."""
    return f"programs along {axis}"


class TileDataflow:
    """What the operations of a module of TTIR use.

    Args:
        module: It.
        sizes: Whole numbers that a launch passed, by argument; those that are known.
    """

    def __init__(self, module: Module, sizes: Mapping[str, int]) -> None:
        self._module, self._sizes = module, sizes
        self._made_by = {name: operation for operation in module.operations for name in operation.results}
        self._least_side = _LEAST_OF_PRODUCT if any(each.name == "tt.dot" for each in module.operations) else 1
        self._of_axis = {axis: self._depends_on_program(axis) for axis in "xyz"}
        self._of_program = set().union(*self._of_axis.values())

    def widened_from(self, name: str) -> str:
        """The type of 16 or 8 bits that a 32-bit value had when it was loaded or computed; empty: it had none."""
        operation = self._made_by.get(name)
        while operation is not None and operation.name in _SHAPES:
            operation = self._made_by.get(operation.operands[0])
        if operation is None or operation.name not in _WIDENS:
            return ""
        before, after = (tile_of(operation.text.rpartition(" : ")[2], number) for number in (0, 1))
        is_widened = before and after and _NARROW.fullmatch(before.element) and after.element == "f32"
        return before.element if before and is_widened else ""

    def unscaled(self, name: str, summed: int) -> str:
        """A value without a factor that is the same along an axis, by which what is summed along it can be scaled.

        Args:
            name: Of the value.
            summed: The axis.
        """
        product = self._made_by.get(name)
        if product is None or product.name != "arith.mulf":
            return name
        for tile, factor in (product.operands[:2], product.operands[1::-1]):
            made = self._made_by.get(factor)
            shape = tile_of(made.text) if made and made.name == "tt.broadcast" else None
            if (shape and shape.shape[summed] == 1) or (made and made.name == "tt.splat"):
                return tile
        return name

    def axes(self, row: int) -> tuple[str, ...] | None:
        """Axes of the grid along which programs do different work in a loop; None: not known.

        Args:
            row: Of a loop in the module's operations.
        """
        operations = self._module.operations
        inside = list(self._inside(row))
        if any(_BRANCHES.match(each.name) for each in operations[:row]):
            return None
        if any(not _PURE.match(each.name) for each in inside):
            return None
        used = (operations[row], *inside)
        return tuple(axis for axis, names in self._of_axis.items() if any(_uses(each, names) for each in used))

    def factors_of_sum(self, row: int) -> tuple[int, int, int] | None:
        """Rows, columns and what is summed over, of a sum that is a product of two tiles; None: it is not.

        Args:
            row: Of a reduction: sum(a[:, :, None] * b[None, :, :], 1); or of their squared differences, which products
                give as well.
        """
        operations = self._module.operations
        reduction = operations[row]
        is_sum = row + 1 < len(operations) and operations[row + 1].name == "arith.addf"
        product = self._made_by.get(reduction.operands[0]) if reduction.operands else None
        axis = re.search(r"axis = (\d+)", reduction.text)
        tile = tile_of(product.text) if product else None
        if not is_sum or product is None or product.name != "arith.mulf" or tile is None or len(tile.shape) != 3:
            return None
        spread = [self.spread_along(name) for name in self._factors(product)]
        at = int(axis[1]) if axis else -1
        if len(spread) != 2 or {*spread, at} != {0, 1, 2}:
            return None
        left, right = (size for dimension, size in enumerate(tile.shape) if dimension != at)
        return left, right, tile.shape[at]

    def is_outer_sum(self, addition: Operation) -> tuple[int, int] | None:
        """Rows and columns of outer products, which a loop adds up and does nothing else with; None: it does not."""
        loop = self._module.operations[addition.loop]
        carried = [name for name in addition.operands if name in loop.block]
        products = [
            made for name in addition.operands if (made := self._made_by.get(name)) and made.name == "arith.mulf"
        ]
        tile = tile_of(addition.text)
        if len(carried) != 1 or len(products) != 1 or tile is None or len(tile.shape) != 2:
            return None
        uses = [each for each in self._inside(addition.loop) if {*carried, *addition.results} & {*each.operands}]
        if {each.name for each in uses} != {"arith.addf", "scf.yield"} or len(uses) != 2:
            return None
        if {self.spread_along(name) for name in self._factors(products[0])} != {0, 1}:
            return None
        return tile.shape[0], tile.shape[1]

    def _factors(self, product: Operation) -> tuple[str, ...]:
        """Of a square of a difference its sides, whose products give it as well."""
        factors, difference = product.operands[:2], self._made_by.get(product.operands[0])
        is_square = len({*factors}) == 1 and difference is not None and difference.name == "arith.subf"
        return difference.operands[:2] if difference is not None and is_square else factors

    def axes_of(self, name: str) -> str:
        """Axes of the grid on which a value depends, or may do so: `xz`."""
        return "".join(axis for axis, names in self._of_axis.items() if name in names)

    def uses_program(self, names: Iterable[str]) -> bool:
        """Whether some of these values depend on the number of the program, or may do so."""
        return not self._of_program.isdisjoint(names)

    def made_by(self, name: str) -> Operation | None:
        """The operation that defines a value; None: it is an argument, or the value of a loop."""
        return self._made_by.get(name)

    def is_loaded(self, name: str) -> bool:
        """Whether a value depends on what was loaded."""
        return self._depends_on(name, "tt.load")

    def is_of_product(self, name: str) -> bool:
        """Whether a value depends on a product of tiles."""
        return self._depends_on(name, "tt.dot")

    def _depends_on(self, name: str, operation: str) -> bool:
        seen, pending = {name}, [name]
        while pending:
            made = self._made_by.get(pending.pop())
            if made is not None and made.name == operation:
                return True
            pending += [each for each in (made.operands if made else ()) if each not in seen]
            seen.update(pending)
        return False

    def reached(self, row: int, names: Iterable[str]) -> set[str]:
        """Values of one turn of a loop that depend on some of its values, and these.

        Args:
            row: Of the loop in the module's operations; -1: all operations are meant.
            names: The values.
        """
        found, inside = set(names), list(self._inside(row))
        before = -1
        while len(found) > before:
            before = len(found)
            for each in inside:
                found.update(own for own, outside in each.block.items() if outside in found)
                if not found.isdisjoint(each.operands):
                    found.update(each.results)
        return found

    def number(self, name: str, *, program: int | None = None) -> int | None:
        """What a value is in each program of the launch, all elements of a tile alike; None: not known.

        Args:
            name: Of the value.
            program: The number of the one program that is meant, along each axis; None: all of them.
        """
        made = self._made_by.get(name)
        if made is None:
            return self._sizes.get(name.lstrip("%"))
        if made.name == "arith.constant":
            constant = _NUMBER.search(made.text)
            return int(constant[1]) if constant else None
        if made.name == "tt.get_program_id":
            return program
        if programs := _PROGRAMS.search(made.text):
            return self._sizes.get(grid_key(programs[1]))
        if made.name in _SAME_NUMBER:
            return self.number(made.operands[0], program=program)
        compute = _ARITHMETIC.get(made.name)
        left, right = (self.number(each, program=program) for each in made.operands[:2]) if compute else (None, None)
        if compute is None or left is None or right is None or (right == 0 and made.name in _DIVIDES):
            return None
        return compute(left, right)

    def turns(self, loop: Operation) -> int | None:
        """Turns of a loop over a range, of program 0 if each begins elsewhere; None: not known, or another loop."""
        if loop.name != "scf.for":
            return None
        start, end, step = loop.operands[1:4]
        length, by = self._distance(start, end), self.number(step)
        return None if length is None or not by else max(-(-length // by), 0)

    def _distance(self, start: str, end: str) -> int | None:
        """How far apart two values are, which may be others in each program: `begin` and `begin + span`."""
        made = self._made_by.get(end)
        if made is not None and made.name == "arith.minsi":
            each = [self._distance(start, operand) for operand in made.operands[:2]]
            return None if None in each else min(length for length in each if length is not None)
        added = [*made.operands[:2]] if made is not None and made.name == "arith.addi" else []
        if start in added:
            added.remove(start)
            return self.number(added[0])
        first, last = self.number(start, program=0), self.number(end)
        return None if first is None or last is None else last - first

    def mean_turns(self, loop: Operation) -> float | None:
        """Turns of a loop as the mean over programs along the one axis that its end depends on; None: not known."""
        if (turns := self.turns(loop)) is not None or loop.name != "scf.for":
            return turns
        start, by = self.number(loop.operands[1]), self.number(loop.operands[3])
        axes = self.axes_of(loop.operands[2])
        programs = self._sizes.get(grid_key(axes), 0)
        if start is None or not by or not programs:
            return None
        chosen = range(0, programs, -(-programs // _MOST_PROGRAMS))
        ends = [self.number(loop.operands[2], program=each) for each in chosen]
        turns_of = [max(-(-(end - start) // by), 0) for end in ends if end is not None]
        return sum(turns_of) / len(turns_of) if len(turns_of) == len(ends) else None

    def times(self, operation: Operation) -> int | None:
        """How often a program does an operation, if no branch leaves it out; None: not known."""
        times = 1
        while operation.loop >= 0:
            operation = self._module.operations[operation.loop]
            turns = self.turns(operation)
            if turns is None:
                return None
            times *= turns
        return times

    def excess(self, mask: str) -> int:
        """How many times as large as needed a tile is of which a mask drops all from a number on, along its sides."""
        times: dict[int, int] = {}
        for part in self.parts_of(mask, ("arith.andi",)):
            compared = _BELOW.match(part.text.partition(" = ")[2])
            added = self.parts_of(part.operands[0], ("arith.addi", "tt.splat"))
            sides = [(each.row, int(found[1])) for each in added if (found := _RANGE.search(each.text))]
            limit = self.number(part.operands[-1])
            if compared and len(sides) == 1 and limit is not None:
                (row, size), least = sides[0], max(limit + (compared[1] == "e"), self._least_side)
                times[row] = max(size >> (least - 1).bit_length(), times.get(row, 1))
        return math.prod(times.values())

    def programs_within(self, mask: str) -> Iterator[tuple[str, int]]:
        """Axes of the grid along which a mask keeps something in the first programs alone, and in how many."""
        for part in self.parts_of(mask, ("arith.andi",)):
            compared = _BELOW.match(part.text.partition(" = ")[2])
            limit = self.number(part.operands[-1])
            added = [*self.parts_of(part.operands[0], ("arith.addi", "tt.splat"))] if compared else []
            starts = [each for each in added if not _RANGE.search(each.text)]
            if not compared or limit is None or len(starts) != 1 or starts[0].name != "arith.muli":
                continue
            program, size = self._made_by.get(starts[0].operands[0]), self.number(starts[0].operands[1])
            axis = _PROGRAM_OF.search(program.text) if program else None
            if axis and size:
                yield axis[1], -(-(limit + (compared[1] == "e")) // size)

    def spread_along(self, name: str) -> int | None:
        """The one dimension along which a tile repeats itself; None: there is no such."""
        operation = self._made_by.get(name)
        while operation is not None and operation.name in ("arith.extf", "arith.truncf"):
            operation = self._made_by.get(operation.operands[0])
        if operation is None or operation.name != "tt.broadcast":
            return None
        before, after = tile_of(operation.text), tile_of(operation.text, 1)
        if before is None or after is None:
            return None
        spread = [
            at for at, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)) if old == 1 and new > 1
        ]
        return spread[0] if len(spread) == 1 else None

    def parts_of(self, name: str, joins: tuple[str, ...]) -> Iterator[Operation]:
        """What a value is made of, through operations that join others and those that leave them as they are."""
        operation = self._made_by.get(name)
        if operation is None:
            return
        if operation.name in (*joins, *_SHAPES, "tt.broadcast", "tt.expand_dims"):
            for each in operation.operands:
                yield from self.parts_of(each, joins)
        else:
            yield operation

    def _depends_on_program(self, axis: str) -> set[str]:
        """Values that depend on the number of the program along an axis, or of which that is not known."""
        another = tuple(f"tt.get_program_id {each} " for each in "xyz" if each != axis)
        found: set[str] = set()
        before = -1
        while len(found) > before:
            before = len(found)
            for row, operation in enumerate(self._module.operations):
                found.update(inside for inside, outside in operation.block.items() if outside in found)
                is_loop = operation.name == "scf.for"
                if any(each in operation.text for each in another):
                    continue
                if (
                    _OPAQUE.match(operation.name)
                    or not found.isdisjoint(operation.operands)
                    or (is_loop and any(not found.isdisjoint(each.results) for each in self._inside(row)))
                ):
                    found.update(operation.results)
                    found.update(operation.block)
        return found

    def _inside(self, row: int) -> Iterator[Operation]:
        """Operations in a loop, those of loops in it among them."""
        loops = {row}
        for at, operation in enumerate(self._module.operations[row + 1 :], row + 1):
            if operation.loop in loops:
                loops.add(at)
                yield operation


def _uses(operation: Operation, names: set[str]) -> bool:
    """Whether an operation uses or makes one of some values, or hides what it uses."""
    return bool(_HIDDEN.match(operation.name)) or not names.isdisjoint((*operation.operands, *operation.results))
