"""Facts about operations in the text of an optimized HLO module."""

from __future__ import annotations

import re
from dataclasses import replace

from bragg.grouping.hlo_program import NOWHERE, HloOperation
from bragg.record.hooks.jax.hlo.collectives import CompiledFor, collective_of
from bragg.record.hooks.jax.hlo.flow import HloFlow
from bragg.record.hooks.jax.hlo.module import HloModule, Instruction
from bragg.record.hooks.jax.hlo.places import Places
from bragg.record.hooks.jax.hlo.states import states_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
# Of these nothing is executed.
_NO_WORK = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "partition-id"})


def operations_in(
    text: str, is_library: Callable[[str], bool], devices: CompiledFor | None = None
) -> dict[str, HloOperation]:
    """The operations that are executed, by name; those that are fused into others are parts of these.

    Args:
        text: The module, as XLA prints it: with tables of stack frames, or with files and lines (before JAX 0.8).
        is_library: Whether a file is none of the user's. The innermost line of the user's counts, if there is one.
        devices: That the program was compiled for; None: not known.
    """
    lines = text.splitlines()
    module, places = HloModule(lines), Places(lines, is_library)
    if devices is not None and (told := _PARTITIONS.search(module.header)):
        devices = replace(devices, n_partitions=int(told[1]))
    states = states_in(module, HloFlow(module), places)
    operations = {}
    for computation, instructions in module.executed():
        for each in instructions:
            if each.code not in _NO_WORK:
                operation = _operation(each, module, places)
                if not operation.op_name and operation.place == NOWHERE:
                    operation = _of_caller(computation, module, places)
                collective = _collective(each, module, devices)
                state = states.get(each.name, operation.state)
                operations[each.name] = operation._replace(collective=collective, state=state)
    return operations


def _operation(instruction: Instruction, module: HloModule, places: Places) -> HloOperation:
    """Its metadata; a missing entry comes from the last fused instruction that has it."""
    own = places.read(instruction.line)
    if not instruction.called or instruction.code == "while" or (own.op_name and own.place != NOWHERE):
        return own
    inner = [places.read(each.line) for each in reversed(module.computations.get(instruction.called, []))]
    # Names without slashes are those of arguments.
    op_name = own.op_name or next((each.op_name for each in inner if "/" in each.op_name), "")
    return HloOperation(op_name, next((each.place for each in inner if each.place != NOWHERE), own.place))


def _of_caller(computation: str, module: HloModule, places: Places) -> HloOperation:
    """The loop that runs a computation: XLA's own copies in it have neither name nor line."""
    while computation in module.callers:
        computation, call = module.callers[computation]
        if call.code == "while":
            loop = places.read(call.line)
            return loop._replace(op_name=f"{loop.op_name}/body" if loop.op_name else "")
    return HloOperation("", NOWHERE)


def _collective(instruction: Instruction, module: HloModule, devices: CompiledFor | None) -> str:
    """What an instruction does with other devices; one that starts or executes another tells what that one does."""
    called = instruction.called if instruction.code in ("async-start", "fusion", "fusion-start") else ""
    inner = module.computations.get(called, []) if called else [instruction]
    return next((told for each in inner if (told := collective_of(each.code, each.line, devices))), "")
