"""Lines of the program that kernels in files of PyTorch's compiler come from.

The compiler writes a file for each kernel. One that it made itself comes from lines of the model, which the compiler
tells where it is asked to; one that the user wrote and a compiled function launches is a copy. Helion writes the lines
as comments into its kernels.
"""

from __future__ import annotations

import inspect
import json
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from bragg.debug.flow.jitted import is_jitted, python_function

# The cheapest level at which compiled graphs know their kernels' lines, in PyTorch 2.9 and later.
_LEVEL = 2
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ')
# Between the program and the compiler.
_OTHERS = (str(Path(__file__).parents[2]), "<frozen")
_COMMENT = re.compile(r"\s*# src\[([^]:]+):(\d+)\]:\s*(.*\S)")
_DEFINITION = re.compile(r"def (\w+)\(")

# For each file of a kernel, places as `file:line: code`.
_PLACES: dict[str, dict[str, None]] = {}


def trace_lines(config: Any) -> None:
    """Let the compiler tell the lines of its kernels, unless the program has chosen how much it tells.

    Args:
        config: The module `torch._inductor.config`.
    """
    if getattr(config.trace, "provenance_tracking_level", None) == 0:
        config.trace.provenance_tracking_level = _LEVEL


def remember_lines(output_code: Any) -> None:
    """Read the lines from each graph when it is compiled, or found in the compiler's cache.

    Args:
        output_code: The module `torch._inductor.output_code`.
    """
    graph = output_code.CompiledFxGraph
    complete = graph.post_compile
    if complete.__module__ == __name__:
        return

    def post_compile(self: Any, *arguments: Any, **named: Any) -> Any:
        result = complete(self, *arguments, **named)
        told = getattr(self, "inductor_provenance_stack_traces_str", None)
        if told:
            _remember(json.loads(told), _names_of(self.current_callable))
        return result

    graph.post_compile = post_compile


def _names_of(function: Any) -> Mapping[str, Any]:
    """The global names of the module that a graph was written to."""
    return getattr(getattr(function, "__func__", function), "__globals__", {})


def _remember(traces: Mapping[str, list[str]], names: Mapping[str, Any]) -> None:
    for key, stacks in traces.items():
        kernel = getattr(names.get(key.partition(":")[0]), "fn", None)
        if not is_jitted(kernel):
            continue
        known = _PLACES.setdefault(python_function(kernel).__code__.co_filename, {})
        for stack in stacks:
            frames = [frame for frame in _FRAME.findall(stack) if not frame[0].startswith(_OTHERS)]
            if frames:
                known[_place(frames[-1][0], int(frames[-1][1]))] = None


def _place(file: str, line: int) -> str:
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def origins(file: str, line: int) -> list[str]:
    """Where the program has what stands at a line of a kernel, as `file:line: code`; empty: it stands there itself."""
    return [*_copied_from(file, line), *_PLACES.get(file, ()), *_commented(file, line)]


def _commented(file: str, line: int) -> Iterator[str]:
    """The line that stands in the closest comments above, as Helion writes them: the first of their block."""
    above = linecache.getlines(file)[:line]
    first: re.Match[str] | None = None
    for text in reversed(above[:-1]):
        found = _COMMENT.match(text)
        if (found is None and first is not None) or _DEFINITION.match(text):
            break
        first = found or first
    if first is not None:
        yield f"{_whole_path(first[1], int(first[2]), first[3])}:{first[2]}: {first[3]}"


def _whole_path(name: str, line: int, code: str) -> str:
    """Where a file is that is known by its name alone, and has some code at a line; else its name."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and Path(path).name == name and linecache.getline(path, line).strip() == code:
            return str(path)
    return name


def _copied_from(file: str, line: int) -> Iterator[str]:
    """The line of the user's own kernel, where that is its copy."""
    wrap = sys.modules.get("torch._higher_order_ops.triton_kernel_wrap")
    above = linecache.getlines(file)[:line]
    first = next((k for k in range(len(above), 0, -1) if _DEFINITION.match(above[k - 1])), None)
    if wrap is None or first is None:
        return
    name = _DEFINITION.findall(above[first - 1])[0]
    for function in _functions(wrap.kernel_side_table.id_to_kernel.values(), name):
        own = function.__code__.co_filename
        lines, start = inspect.getsourcelines(function)
        body = next((k for k, text in enumerate(lines) if _DEFINITION.match(text.lstrip())), 0)
        there = start + body + line - first
        if own != file and linecache.getline(own, there).strip() == above[line - 1].strip():
            yield _place(own, there)
            return


def _functions(kernels: Any, name: str) -> Iterator[FunctionType]:
    """Functions of a name among kernels and what their modules know."""
    for kernel in kernels:
        function = python_function(kernel)
        for one in (kernel, function.__globals__.get(name)):
            if one is kernel or is_jitted(one):
                found = python_function(one)
                if found.__name__ == name:
                    yield found
