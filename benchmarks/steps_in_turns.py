"""What a step of a slow program takes more than one of its repaired twin, unrecorded and at the same time.

python benchmarks/steps_in_turns.py [--seconds 4] [--programs DIRECTORY] [--out FILE] [NAME...]

Both programs of each pair of tests/gpu/programs/slow are set up in processes of their own, those of four pairs at the
same time; then their loops take steps in turns, and neighbours share the pace of the machine. `saved` is the median
share of a step that the twin saves, with its quartiles. Programs of PyTorch that loop over `range` at the top level or
below a `with` have steps.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import harness

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gpu.slow_pairs import PROGRAMS, RULES

_COUNT = "_steps"
_TURN_S = 0.1
_AT_ONCE = 4
_SIDES = ("slow", "fast")


def parts(text: str) -> tuple[ast.Module, ast.Module, int]:
    """What a program does once, its loop, and how many steps that has; the loop takes `_steps` of them.

    Raises:
        ValueError: It has no such loop.
    """
    tree = ast.parse(text)
    for at, statement in reversed(list(enumerate(tree.body))):
        inner = statement.body[-1] if isinstance(statement, ast.With) else statement
        if isinstance(inner, ast.For):
            call = inner.iter
            if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and len(call.args) == 1):
                break
            count = int(ast.literal_eval(call.args[0]))
            inner.iter = ast.parse(f"range({_COUNT})", mode="eval").body
            return (
                ast.Module(tree.body[:at], []),
                ast.fix_missing_locations(ast.Module([statement], [])),
                count,
            )
    raise ValueError("no loop over range(n) at the top level")


def take_turns(program: Path) -> None:
    """Set a program up, then take as many steps as each line of stdin says, and print how long they took, in s."""
    setup, loop, count = parts(program.read_text())
    import torch

    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(program), _COUNT: count}
    exec(compile(setup, str(program), "exec"), names)
    code = compile(loop, str(program), "exec")
    exec(code, names)
    for line in chain([""], sys.stdin):
        torch.cuda.synchronize()
        start = time.perf_counter()
        names[_COUNT] = int(line or count)
        exec(code, names)
        torch.cuda.synchronize()
        print(f"turn {time.perf_counter() - start:.9f} {names[_COUNT]}", flush=True)


class Steps:
    """A program that was set up, in a process of its own.

    Args:
        program: Its file.
        child: The process that `take_turns`.
    """

    def __init__(self, program: Path, child: subprocess.Popen[str]) -> None:
        self._program, self._child = program, child

    @cached_property
    def _count(self) -> int:
        """Steps of a turn; known once the program is set up."""
        return max(int(_TURN_S / self._told()), 2)

    def take(self) -> float:
        """Take steps for a tenth of a second, and give the mean of one, in s."""
        assert self._child.stdin
        self._child.stdin.write(f"{self._count}\n")
        self._child.stdin.flush()
        return self._told()

    def _told(self) -> float:
        assert self._child.stdout
        for line in self._child.stdout:
            if line.startswith("turn "):
                _, took, count = line.split()
                return float(took) / int(count)
        raise ValueError(f"{self._program.name} ended: {self._child.wait()}")


@contextmanager
def steps_of(program: Path) -> Iterator[Steps]:
    """The steps of a program, which ends with the block."""
    command = [sys.executable, __file__, "--side", str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield Steps(program, child)
        finally:
            assert child.stdin
            child.stdin.close()


def measured(name: str, slow: Steps, fast: Steps, budget_s: float) -> dict[str, Any]:
    """One row."""
    ratio = harness.Ratio.of(_alternated(slow.take, fast.take, budget_s))
    return {
        "program": name,
        "rounds": ratio.rounds,
        "slow_us": round(ratio.without_s * 1e6, 1),
        "fast_us": round(ratio.with_s * 1e6, 1),
        "saved": round(1 - ratio.median, 3),
        "quartiles": [round(1 - ratio.high, 3), round(1 - ratio.low, 3)],
    }


def _alternated(slow: Callable[[], float], fast: Callable[[], float], budget_s: float) -> list[tuple[float, float]]:
    slow(), fast()  # the first turn after the set-up
    return harness.alternate(slow, fast, budget_s=budget_s)


def main() -> None:
    """All pairs that have steps, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=4, help="for the turns of each pair")
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="directory of NAME_slow.py and NAME_fast.py")
    parser.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.side:
        take_turns(arguments.side)
        return
    names, rows = arguments.names or list(RULES), []
    for start in range(0, len(names), _AT_ONCE):
        with ExitStack() as stack:
            pairs = {
                name: [stack.enter_context(steps_of(arguments.programs / f"{name}_{side}.py")) for side in _SIDES]
                for name in names[start : start + _AT_ONCE]
            }
            for name, (slow, fast) in pairs.items():
                try:
                    rows.append(measured(name, slow, fast, arguments.seconds))
                except (ValueError, OSError) as error:
                    rows.append({"program": name, "failed": str(error)})
                print(json.dumps(rows[-1]), flush=True)
    harness.report("steps_in_turns", rows, arguments.out)


if __name__ == "__main__":
    main()
