"""The walk of Python frames without the GIL against what the interpreter itself says."""

import asyncio
import functools
import importlib.util
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bragg import _core

pytestmark = pytest.mark.skipif(not _core._walk_available(), reason="this interpreter cannot be walked (free-threaded)")

Location = tuple[str, str, int]


def expected_frames() -> list[Location]:
    """Frames of the caller by the interpreter's own API, innermost first."""
    frames = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
        frames.append((name, code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return frames


def check_here() -> int:
    """Compare both accounts at one line; return the depth."""
    walked, expected = _core._walk(), expected_frames()
    assert walked == expected
    return len(walked)


def test_walk_equals_the_interpreters_frames_in_a_deep_recursion() -> None:
    def recurse(levels: int) -> int:
        return recurse(levels - 1) if levels else check_here()

    assert recurse(300) - recurse(0) == 300


def test_walk_sees_generators_and_their_callers() -> None:
    def outer() -> Iterator[int]:
        yield from inner()

    def inner() -> Iterator[int]:
        yield check_here()

    assert next(outer()) == check_here() + 2


def test_walk_sees_generator_expressions_and_comprehensions() -> None:
    assert next(check_here() for _ in range(1)) == check_here() + 1
    assert len([check_here() for _ in range(2)]) == 2
    assert {check_here(): check_here() for _ in range(1)}


def test_walk_sees_coroutines_and_async_generators() -> None:
    async def values() -> Any:
        yield check_here()

    async def leaf() -> int:
        await asyncio.sleep(0)
        return sum([depth async for depth in values()]) + check_here()

    async def root() -> int:
        return await leaf()

    assert asyncio.run(root()) > 0


def test_walk_sees_lambdas_and_functions_called_from_c() -> None:
    assert sorted([1], key=lambda _: check_here()) == [1]
    assert functools.partial(functools.partial(lambda extra: check_here() + extra, 1))() > 1
    assert max(map(lambda _: check_here(), "ab")) > 0  # noqa: C417 - calls from map are what is tested
    assert functools.reduce(lambda _, __: check_here(), "ab", 0) > 0


def test_walk_hides_the_frame_around_an_inlined_constructor() -> None:
    class Thing:
        def __init__(self) -> None:
            self.depth = check_here()

    def make() -> int:
        return Thing().depth

    assert len({make() for _ in range(100)}) == 1


def test_walk_sees_dunder_methods_descriptors_and_context_managers() -> None:
    class Thing:
        @property
        def value(self) -> int:
            return check_here()

        def __getattr__(self, name: str) -> int:
            return check_here()

        def __getitem__(self, key: int) -> int:
            return check_here()

        def __add__(self, other: int) -> int:
            return check_here()

        def __enter__(self) -> int:
            return check_here()

        def __exit__(self, *exception: object) -> None:
            check_here()

    thing = Thing()
    for _ in range(50):  # enough for the interpreter to specialise the calls
        with thing as depth:
            assert {thing.value, thing.missing, thing[0], thing + 1} == {depth}


def test_walk_sees_handlers_of_exceptions_and_finalizers() -> None:
    class Dying:
        def __del__(self) -> None:
            check_here()

    try:
        int("x")
    except ValueError:
        check_here()
    finally:
        Dying()


def test_walk_sees_executed_source_with_names_beyond_ascii() -> None:
    for name in ("naïve", "größe", "кадр", "帧", "𐌰𐌱"):
        scope: dict[str, Any] = {"check_here": check_here, "walk": _core._walk}
        source = f"def {name}():\n    check_here()\n    return walk()\n"
        exec(compile(source, f"<{name} \U0001f50d>", "exec"), scope)
        assert scope[name]()[0] == (name, f"<{name} \U0001f50d>", 3)


def test_undecodable_bytes_of_a_file_name_become_replacement_characters() -> None:
    scope: dict[str, Any] = {"walk": _core._walk}
    exec(compile("frames = walk()", "caf\udce9.py", "exec"), scope)
    assert scope["frames"][0] == ("<module>", "caf\ufffd.py", 1)


def test_names_may_be_instances_of_a_subclass_of_str() -> None:
    class Text(str):
        pass

    code = compile("frames = walk()", "plain.py", "exec").replace(co_filename=Text("sub\u00e9.py"))
    scope: dict[str, Any] = {"walk": _core._walk}
    exec(code, scope)
    assert scope["frames"][0][1] == "sub\u00e9.py"


def test_threads_see_their_own_frames() -> None:
    results: list[int] = []

    def work(levels: int) -> None:
        if levels:
            work(levels - 1)
        else:
            results.extend(check_here() for _ in range(200))

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800
    assert len(set(results)) == 4


def test_walk_needs_no_gil() -> None:
    """`_walk` releases the GIL around its reads, so other threads run Python at the same time."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            [object() for _ in range(100)]

    spinner = threading.Thread(target=spin)
    spinner.start()
    try:
        for _ in range(50):
            check_here()
    finally:
        stop.set()
        spinner.join()


def code_objects(name: str) -> Iterator[types.CodeType]:
    """All code objects of a module's source, nested ones included. Not imported: not every Python has turtle's Tk."""
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    pending = [compile(Path(found.origin).read_bytes(), name, "exec", dont_inherit=True)]
    while pending:
        code = pending.pop()
        yield code
        pending.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))


@pytest.mark.parametrize(
    "name", ["argparse", "ast", "asyncio.base_events", "dataclasses", "inspect", "typing", "turtle", "_pydecimal"]
)
def test_line_of_every_instruction_equals_co_lines(name: str) -> None:
    compared = 0
    for code in code_objects(name):
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                assert _core._line_of(code, offset) == (line or 0), (code, offset)
                compared += 1
    assert compared > 1000


def test_line_jumps_of_every_size_are_decoded() -> None:
    for gap in (0, 1, 2, 3, 31, 32, 63, 64, 127, 128, 2000, 70000):
        source = "a = (\n" + "\n" * gap + "f(1) +\nb)\n" + " " * (gap % 500) + "\n" * gap + "c = 1\n"
        code = compile(source, "jumps", "exec")
        lines = {start: line for start, _, line in code.co_lines()}
        assert {start: _core._line_of(code, start) for start in lines} == {s: n or 0 for s, n in lines.items()}


def test_code_with_a_damaged_line_table_has_lines_but_no_crash() -> None:
    code = check_here.__code__
    for table in (b"", b"\xff", b"\xf0\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", bytes(range(256)), code.co_linetable[:3]):
        damaged = code.replace(co_linetable=table)
        for offset in range(0, 200, 2):
            assert isinstance(_core._line_of(damaged, offset), int)


def test_line_of_refuses_what_is_not_code() -> None:
    with pytest.raises(TypeError, match="code object"):
        _core._line_of("text", 0)


def test_a_walk_costs_nanoseconds_per_frame(capsys: pytest.CaptureFixture[str]) -> None:
    def recurse(levels: int, measure: Callable[[], float]) -> float:
        return recurse(levels - 1, measure) if levels else measure()

    def best() -> float:
        return min(_core._walk_ns(2000) for _ in range(20))

    shallow, deep = recurse(0, best), recurse(100, best)
    per_frame_ns = (deep - shallow) / 100
    with capsys.disabled():
        print(f" {shallow:.1f} ns + {per_frame_ns:.2f} ns per frame", end="")
    assert per_frame_ns < 20  # 1.3-1.6 on an idle machine


def test_a_process_without_debug_tables_is_walked_too() -> None:
    """-X no_debug_ranges drops the columns: the entries of the location table take another form."""
    if sys.version_info < (3, 11):
        pytest.skip("the option is new in 3.11")
    program = "from bragg import _core\ndef work():\n\n    return _core._walk()\nprint([line for *_, line in work()])"
    command = [sys.executable, "-X", "no_debug_ranges", "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[4, 5]\n"
