"""Correct kernels are made wrong by machine: what their accesses say must go wrong then is found."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import bragg.debug

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

from bragg.debug.checkers import Checker, LaunchFindings
from bragg.debug.flow.place import kernel_line
from bragg.debug.memory.access import Access
from bragg.debug.session import CheckedSession, checking
from bragg.debug.state import Listeners
from tests.kernels.correct import CORRECT


@dataclass(frozen=True)
class Site:
    """A call in a kernel whose change must be found.

    Attributes:
        entry: Of the table of correct kernels.
        file: Of the kernel.
        line: Of the call.
        change: `unmask`, `shift` or `unlock`.
        tensor: That is accessed.
    """

    entry: str
    file: str
    line: int
    change: str
    tensor: str


def changes_of(access: Access) -> set[str]:
    """What would certainly go wrong if the call were changed."""
    buffer, found = access.buffer, set()
    if access.kind == "atomic":
        owners: dict[int, set[int]] = {}
        for offset, program in zip(access.offsets.tolist(), access.programs.tolist(), strict=True):
            owners.setdefault(offset, set()).add(program)
        is_shared = any(len(programs) > 1 for programs in owners.values())
        return {"unlock"} if is_shared and access.dtype.is_floating() else set()
    if access.mask is not None and buffer.outside(access.offset.data).any():
        found.add("unmask")
    if buffer.gaps is None and len(access.offsets) and int(access.offsets.max()) == buffer.high - 1:
        found.add("shift")
    return found


@cache
def sites() -> list[Site]:
    """Every change of a single call of the corpus that must be found."""
    found: dict[Site, None] = {}
    for entry, launch in CORRECT.items():
        # Tensors that are found by their addresses have another name in every run.
        if launch.__module__.endswith(".pointers"):
            continue

        def watch(_record: LaunchFindings, entry: str = entry) -> Listeners:
            def see(access: Access) -> None:
                file, line = kernel_line()
                for change in changes_of(access):
                    found[Site(entry, file, line, change, access.buffer.name)] = None

            return Listeners(access=[see])

        with checking(CheckedSession([Checker("log", "", True, watch)])):
            launch()
    return [site for site in found if call_of(site) is not None]


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


def call_of(site: Site) -> ast.Call | None:
    """The one call at the site that can be changed; None: there is none, or several."""
    calls = [
        node
        for node in ast.walk(tree_of(site.file))
        if isinstance(node, ast.Call)
        and node.lineno == site.line
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func) in ("tl.load", "tl.store", "tl.atomic_add")
        and "boundary_check" not in {keyword.arg for keyword in node.keywords}
    ]
    if len(calls) != 1 or (site.change == "unmask" and not mask_of(calls[0])):
        return None
    return calls[0]


def mask_of(call: ast.Call) -> bool:
    count = 1 if ast.unparse(call.func) == "tl.load" else 2
    return len(call.args) > count or any(keyword.arg == "mask" for keyword in call.keywords)


def changed(call: ast.Call, change: str) -> str:
    """The call's new text."""
    count = 1 if ast.unparse(call.func) == "tl.load" else 2
    arguments = [ast.unparse(argument) for argument in call.args]
    named = [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in call.keywords]
    if change == "unmask":
        return f"{ast.unparse(call.func)}({', '.join(arguments[:count])})"
    if change == "shift":
        return f"{ast.unparse(call.func)}({', '.join([f'{arguments[0]} + 1', *arguments[1:], *named])})"
    named = [text for text in named if text.startswith("mask=")]
    return f"tl.store({', '.join([*arguments, *named])})"


def replaced(file: str, node: ast.AST, text: str) -> str:
    """The text of a file with one node exchanged."""
    lines = Path(file).read_text().splitlines(keepends=True)
    starts = np.concatenate([[0], np.cumsum([len(line) for line in lines])])
    start = int(starts[node.lineno - 1]) + node.col_offset  # type: ignore[attr-defined]
    end = int(starts[node.end_lineno - 1]) + node.end_col_offset  # type: ignore[attr-defined]
    whole = "".join(lines)
    return whole[:start] + text + whole[end:]


def launch_of(text: str, entry: str, folder: Path) -> Callable[[], Any]:
    """The launch of one entry of a module with a changed text."""
    place = folder / f"changed_{abs(hash(text))}.py"
    place.write_text(text)
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(CORRECT, clear=True):
        spec.loader.exec_module(module)
        return CORRECT[entry]


def rules_of(text: str, entry: str, folder: Path, *more: str) -> dict[str, set[str]]:
    """Rules that found something, and the tensors they found it for; by the checkers of the default and more."""
    launch = launch_of(text, entry, folder)
    # What the host makes of wrong results may fail in any way.
    with bragg.debug.check(add=more) as report, suppress(Exception):
        launch()
    found: dict[str, set[str]] = {}
    for finding in report:
        found.setdefault(finding.rule, set()).add(finding.tensor.name if finding.tensor else "")
    return found


EXPECTED = {"unmask": "out-of-bounds", "shift": "out-of-bounds", "unlock": "data-race"}


def test_there_are_many_sites() -> None:
    counts = {change: sum(site.change == change for site in sites()) for change in EXPECTED}
    assert counts["unmask"] >= 40
    assert counts["shift"] >= 60
    assert counts["unlock"] >= 2


# Smaller sites do not exist: there is nothing to shrink.
@settings(
    max_examples=40, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_changed_call_is_found(tmp_path: Path, data: st.DataObject) -> None:
    site = data.draw(st.sampled_from(sites()))
    call = call_of(site)
    assert call is not None
    found = rules_of(replaced(site.file, call, changed(call, site.change)), site.entry, tmp_path)
    assert site.tensor in found.get(EXPECTED[site.change], set()), (site, found)


def waits() -> list[tuple[str, str, ast.While]]:
    """Loops that wait for another program: file, name of the kernel, loop."""
    files = {site.file for site in sites()}
    return [
        (file, function.name, node)
        for file in sorted(files)
        for function in ast.walk(tree_of(file))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.While) and "atomic" in ast.unparse(node.test) and isinstance(node.body[0], ast.Pass)
    ]


def entry_of(file: str, kernel: str) -> str:
    """The entry that launches a kernel."""
    return next(
        node.name
        for node in tree_of(file).body
        if isinstance(node, ast.FunctionDef) and node.name in CORRECT and f"{kernel}[" in ast.unparse(node)
    )


def test_programs_that_do_not_wait_race(tmp_path: Path) -> None:
    share_only_the_counter = {"resident_kernel", "ordered_kernel"}
    loops = [wait for wait in waits() if wait[1] not in share_only_the_counter]
    assert len(loops) >= 3
    for file, kernel, loop in loops:
        found = rules_of(replaced(file, loop, "pass"), entry_of(file, kernel), tmp_path)
        assert "data-race" in found, (kernel, found)
