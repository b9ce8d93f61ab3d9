"""Tasks that take turns on one thread: each stands below its own scopes, and below those that it was made in."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import types
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bragg
from bragg import _core
from bragg.model import FrameKind, Profile
from tests.support.fake_gpu_runs import Record, kernels, path_of

pytestmark = pytest.mark.skipif(not _core._walk_available(), reason="objects of this interpreter cannot be read")

Paths = dict[str, int]
Profiled = Callable[[Callable[[], Any]], Paths]


def scopes(profile: Profile) -> Paths:
    """How often each path of scopes was entered."""
    tree, counts = profile.tree, profile.own("host_count")
    found: Counter[str] = Counter()
    for node in range(1, len(tree)):
        if tree.kind[node] == FrameKind.SCOPE:
            path = [step for step in tree.path(node)[1:] if tree.kind[step] == FrameKind.SCOPE]
            found["/".join(tree.label(step) for step in path)] += int(counts[node])
    return dict(found)


@pytest.fixture(params=["shadow", "python"])
def profiled(request: pytest.FixtureRequest, tmp_path: Path) -> Profiled:
    def run(body: Callable[[], Any]) -> Paths:
        path = str(tmp_path / "run.bragg")
        with bragg.profile(path, backend="cpu", context=request.param):
            body()
        assert _core.context_depth() == 0
        return scopes(bragg.load(path))

    return run


def running(main: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[], object]:
    return lambda: asyncio.run(main())


async def _request(number: int, steps: int = 3) -> None:
    with bragg.scope(f"request {number}"):
        for _ in range(steps):
            await asyncio.sleep(0)
            with bragg.scope("work"):
                await asyncio.sleep(0)


def test_scopes_of_concurrent_tasks_are_not_within_each_other(profiled: Profiled) -> None:
    async def main() -> None:
        await asyncio.gather(*map(_request, range(8)))

    paths = profiled(running(main))
    assert paths == {f"request {n}": 1 for n in range(8)} | {f"request {n}/work": 3 for n in range(8)}


def test_scope_around_the_loop_is_around_all_of_its_tasks(profiled: Profiled) -> None:
    async def main() -> None:
        await asyncio.gather(_request(0, 1), _request(1, 1))

    def program() -> None:
        with bragg.scope("program"):
            asyncio.run(main())

    expected = {"program": 1} | {f"program/request {n}{rest}": 1 for n in (0, 1) for rest in ("", "/work")}
    assert profiled(program) == expected


def test_tasks_and_threads_inherit_the_scope_they_are_made_in(profiled: Profiled) -> None:
    def compute() -> None:
        with bragg.scope("in a thread"):
            pass

    def later() -> None:
        with bragg.scope("later"):
            pass

    async def part(name: str) -> None:
        await asyncio.sleep(0)
        with bragg.scope(name):
            await asyncio.sleep(0)

    async def handler(number: int) -> None:
        with bragg.scope(f"handler {number}"):
            with bragg.scope("parts"):
                await asyncio.gather(part("a"), part("b"))
            asyncio.get_running_loop().call_soon(later)
            await asyncio.to_thread(compute)
        await part("after")

    async def main() -> None:
        await asyncio.gather(handler(0), handler(1))

    below = ["", "/parts", "/parts/a", "/parts/b", "/in a thread", "/later"]
    expected = {f"handler {n}{rest}": 1 for n in (0, 1) for rest in below}
    assert profiled(running(main)) == {**expected, "after": 2}


def test_one_scope_object_is_open_in_many_tasks_at_once(profiled: Profiled) -> None:
    shared = bragg.scope("shared")

    async def user(number: int) -> None:
        for _ in range(3):
            with shared, bragg.scope(f"user {number}"):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(user(0), user(1))

    assert profiled(running(main)) == {"shared": 6, "shared/user 0": 3, "shared/user 1": 3}


def test_function_that_runs_in_a_copied_context_is_within_its_caller(profiled: Profiled) -> None:
    def called() -> None:
        with bragg.scope("called"):
            pass

    def program() -> None:
        with bragg.scope("caller"):
            contextvars.copy_context().run(called)
            contextvars.Context().run(called)

    assert profiled(program) == {"caller": 1, "caller/called": 2}


def test_asynchronous_generators_are_within_who_asks_them(profiled: Profiled) -> None:
    async def numbers(name: str) -> AsyncIterator[int]:
        with bragg.scope(f"make {name}"):
            for number in range(3):
                await asyncio.sleep(0)
                yield number

    async def consumer(name: str) -> None:
        with bragg.scope(f"consume {name}"):
            async for _ in numbers(name):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(consumer("a"), consumer("b"))

    expected = {f"consume {name}{rest}": 1 for name in "ab" for rest in ("", f"/make {name}")}
    assert profiled(running(main)) == expected


def test_scope_of_a_coroutine_that_another_task_closes_ends(profiled: Profiled) -> None:
    async def forever() -> None:
        with bragg.scope("abandoned"):
            await asyncio.get_running_loop().create_future()

    async def main() -> None:
        coroutine = forever()
        contextvars.copy_context().run(coroutine.send, None)  # what begins it goes away
        with bragg.scope("other"):
            coroutine.close()
            with bragg.scope("inner"):
                await asyncio.sleep(0)

    assert profiled(running(main)) == {"abandoned": 1, "other": 1, "other/inner": 1}


def test_cancelled_tasks_leave_their_scopes(profiled: Profiled) -> None:
    async def waiting() -> None:
        with bragg.scope("waiting"):
            await asyncio.Event().wait()

    async def main() -> None:
        tasks = [asyncio.create_task(waiting()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with bragg.scope("end"):
            pass

    assert profiled(running(main)) == {"waiting": 3, "end": 1}


@pytest.mark.parametrize("n_variables", [0, 1, 15, 40, 400])
def test_scope_is_inherited_among_any_number_of_variables(profiled: Profiled, n_variables: int) -> None:
    async def part() -> None:
        await asyncio.sleep(0)
        with bragg.scope("part"):
            pass

    async def main() -> None:
        for number in range(n_variables):
            contextvars.ContextVar(f"variable {number}").set(number)
        with bragg.scope("whole"):
            await asyncio.gather(part(), part())

    assert profiled(running(main)) == {"whole": 1, "whole/part": 2}


def test_contexts_of_ended_tasks_are_let_go(profiled: Profiled) -> None:
    contexts = []

    async def task(number: int) -> None:
        contexts.append(weakref.ref(contextvars.copy_context()))
        await _request(number)

    async def main() -> None:
        for number in range(20):
            own = contextvars.copy_context()
            contexts.append(weakref.ref(own))
            own.run(partial(asyncio.ensure_future, task(number)))
        del own
        await asyncio.sleep(0.05)

    profiled(running(main))
    gc.collect()
    assert [context for context in contexts if context() is not None] == []


def test_kernels_of_concurrent_tasks_are_below_their_own_scopes(record: Record) -> None:
    """The driver is called without the GIL; parts launch without a scope of their own."""
    run = record(
        """
        import asyncio
        async def part(number):
            for _ in range(2):
                await asyncio.sleep(0)
                gpu.launch(f"kernel_{number}")
        async def request(number):
            with bragg.scope(f"request {number}"):
                await asyncio.gather(part(number), part(number))
                gpu.launch(f"last_{number}")
            await asyncio.sleep(0)
            gpu.launch("outside")
        async def main():
            await asyncio.gather(*map(request, range(4)))
        with bragg.scope("all"): asyncio.run(main())
        gpu.synchronize()
        """,
        context="shadow",
    )
    expected = {"all/outside": 4}
    for number in range(4):
        expected[f"all/request {number}/kernel_{number}"] = 4
        expected[f"all/request {number}/last_{number}"] = 1
    assert kernels(run.main) == expected


def test_python_paths_of_tasks_go_on_from_the_scope_they_are_made_in(record: Record) -> None:
    run = record(
        """
        import asyncio
        async def part(number):
            await asyncio.sleep(0)
            gpu.launch("kernel")
        async def request(number):
            with bragg.scope(f"request {number}"):
                await asyncio.gather(part(number))
        async def main():
            await asyncio.gather(request(0), request(1))
        asyncio.run(main())
        gpu.synchronize()
        """,
        context="python",
    )
    tree = run.main.tree
    nodes = [node for node in range(len(tree)) if tree.kind[node] == FrameKind.KERNEL]
    assert len(nodes) == 2
    for node in nodes:
        path = path_of(run.main, node)
        assert path.startswith("<module>/run/")
        assert path.count("<module>") == 1
        assert "/request/request 0/part/" in path or "/request/request 1/part/" in path


def test_coroutines_that_share_a_context_are_said_to_be_mixed_up(tmp_path: Path) -> None:
    """Nothing tells whose turn it is: a trampoline of one's own, or greenlets."""

    @types.coroutine
    def pause() -> Generator[None, None, None]:
        yield

    async def worker(name: str) -> None:
        with bragg.scope(name):
            await pause()

    path = str(tmp_path / "run.bragg")
    with bragg.profile(path, backend="cpu", context="shadow"):
        workers = [worker("a"), worker("b")]
        for coroutine in workers:
            coroutine.send(None)
        for coroutine in workers:
            coroutine.close()
    profile = bragg.load(path)
    assert scopes(profile) == {"a": 1, "a/b": 1}
    assert profile.meta["statistics"]["interleaved_scopes"] == 1


def test_tasks_are_not_said_to_be_mixed_up(tmp_path: Path) -> None:
    async def main() -> None:
        await asyncio.gather(*map(_request, range(8)))

    path = str(tmp_path / "run.bragg")
    with bragg.profile(path, backend="cpu", context="shadow"):
        asyncio.run(main())
    assert bragg.load(path).meta["statistics"]["interleaved_scopes"] == 0
