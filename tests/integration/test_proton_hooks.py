"""Hooks of bragg.proton at launches of Triton kernels, on the fake driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import fake_cuda
from tests.support.proton_runs import ProtonRun, metadata_state, outline, run_program

pytest.importorskip("triton")

Run = Callable[[str], ProtonRun]
START = """
import bragg.proton as proton
import triton, triton.language as tl, triton_driver
from fake_cuda import FakeCuda
from triton_driver import Tensor
driver = triton_driver.use(FakeCuda())
gpu = driver._cuda

asked = []
def metadata(grid, compiled, arguments):
    asked.append(compiled.name)
    return {"name": f"add_{grid[0]}", "flops32": 2 * grid[0], "bytes": 8.0, "extra": 7}

@triton.jit(launch_metadata=metadata)
def add(x, n: tl.constexpr):
    tl.store(x + tl.arange(0, n), 1.0)

@triton.jit
def plain(x, n: tl.constexpr):
    tl.store(x + tl.arange(0, n), 1.0)

x = Tensor()
"""


@pytest.fixture
def run(tmp_path: Path, fakes_directory: Path) -> Run:
    """Runs a program with the kernels `add`, which has launch metadata, and `plain`."""
    return lambda body: run_program(tmp_path, START + body, environ=fake_cuda.environment(fakes_directory))


def test_launch_metadata_names_the_kernel_and_gives_its_metrics(run: Run) -> None:
    done = run("""
proton.start("x", hook="triton")
with proton.scope("a"):
    add[(4,)](x, 16); add[(4,)](x, 16); plain[(1,)](x, 16)
proton.finalize()
""")
    assert done.exit_code == 0, done.errors
    assert outline(done.tree()) == [
        "ROOT bytes=0 count=0 extra=0 flops32=0",
        "  a",
        "    add_4 bytes=16 count=2 extra=14 flops32=16.0",
        "    plain count=1",
    ]


def test_kernels_may_give_one_metric_values_of_different_types_and_units(run: Run) -> None:
    done = run("""
proton.start("x", hook="triton")
for value in ({"extra": 2}, {"extra": 0.5}, {"extra (us)": 3}):
    add.launch_metadata = lambda *asked, value=value: {**value, "flops": 1, "name": str(value)}
    with proton.scope("a"): add[(1,)](x, 16)
proton.finalize()
""")
    assert (done.exit_code, done.errors) == (0, "")
    assert [line.partition("}")[2] for line in outline(done.tree())[2:]] == [
        " count=1 extra=2.0 flops=1.0",
        " count=1 extra=0.5 flops=1.0",
        " count=1 extra (us)=3 flops=1.0",
    ]


def test_without_the_hook_nobody_is_asked(run: Run) -> None:
    done = run("""
proton.start("x")
add[(4,)](x, 16)
proton.finalize()
assert not asked
""")
    assert (done.exit_code, outline(done.tree())) == (0, ["ROOT count=0", "  add count=1"]), done.errors


def test_launches_are_asked_while_a_session_wants_it(run: Run) -> None:
    done = run("""
session = proton.start("x", hook="triton")
proton.deactivate(session)
add[(1,)](x, 16)
proton.activate(session); proton.activate(session)
add[(2,)](x, 16)
proton.finalize()
add[(3,)](x, 16)
assert len(asked) == 1, asked
""")
    assert (done.exit_code, outline(done.tree())[1:]) == (0, ["  add_2 bytes=8 count=1 extra=7 flops32=4.0"]), (
        done.errors
    )


def test_kernels_are_chosen_by_name(run: Run) -> None:
    done = run("""
hook = proton.hooks.LaunchHook()
assert hook is proton.hooks.launch.LaunchHook()
hook.configure(exclude="add")
proton.start("x", hook=hook)
add[(1,)](x, 16)
hook.configure(include=".*dd")
add[(2,)](x, 16)
hook.configure()
proton.finalize()
assert len(asked) == 1, asked
""")
    assert (done.exit_code, sorted(outline(done.tree())[1:])) == (
        0,
        ["  add count=1", "  add_2 bytes=8 count=1 extra=7 flops32=4.0"],
    ), done.errors


def test_work_of_a_metadata_function_is_below_its_own_state(run: Run) -> None:
    done = run("""
def slow(grid, compiled, arguments):
    gpu.launch("reduce")
    return {"name": "named"}
add.launch_metadata = slow
proton.start("x", hook="triton")
with proton.scope("a"): add[(1,)](x, 16)
proton.finalize()
""")
    state = metadata_state("add", 2)
    assert outline(done.tree()) == [
        "ROOT count=0",
        "  a",
        *state,
        f"{'  ' * (2 + len(state))}reduce count=1",
        "    named count=1",
    ], done.errors


def test_metadata_function_that_raises_is_told_once_and_its_kernel_recorded(run: Run) -> None:
    done = run("""
def broken(grid, compiled, arguments): raise KeyError("size")
add.launch_metadata = broken
proton.start("x", hook="triton")
add[(1,)](x, 16); add[(1,)](x, 16)
proton.finalize()
""")
    assert (done.exit_code, outline(done.tree())) == (0, ["ROOT count=0", "  add count=2"])
    assert done.errors.count("KeyError: 'size'") == 1


OWN = """
from bragg.proton.hooks import Hook, HookManager
calls = []
class Own(Hook):
    def __init__(self, name, priority=0):
        self.name, self.priority = name, priority
    def init_handle(self, module, function, name, metadata_group, hash): calls.append((self.name, "load", name))
    def enter(self, metadata): calls.append((self.name, "enter", metadata.get()["name"]))
    def exit(self, metadata): calls.append((self.name, "exit"))
    def activate(self): calls.append((self.name, "on"))
    def deactivate(self): calls.append((self.name, "off"))
"""


def test_own_hooks_are_called_by_priority_and_beside_those_of_others(run: Run) -> None:
    done = run(
        OWN
        + """
others = []
triton.knobs.runtime.launch_enter_hook.add(others.append)
low, high = Own("low"), Own("high", 5)
session = proton.start("x", hook=low)
HookManager.register(high, session)
plain[(1,)](x, 16)
proton.finalize()
plain[(1,)](x, 16)
assert calls == [("low", "on"), ("high", "on"), ("high", "load", "plain"), ("low", "load", "plain"),
    ("high", "enter", "plain"), ("low", "enter", "plain"), ("low", "exit"), ("high", "exit"),
    *calls[-2:]], calls
assert sorted(calls[-2:]) == [("high", "off"), ("low", "off")]
assert len(others) == 2
"""
    )
    assert (done.exit_code, outline(done.tree())) == (0, ["ROOT count=0", "  plain count=1"]), done.errors


def test_hook_that_raises_is_told_once_and_the_launch_recorded(run: Run) -> None:
    done = run(
        OWN
        + """
class Broken(Own):
    def enter(self, metadata): raise ValueError("oh")
    def deactivate(self): raise KeyError("no")
proton.start("x", hook=Broken("broken"))
for _ in range(3): plain[(1,)](x, 16)
proton.finalize()
"""
    )
    assert (done.exit_code, outline(done.tree())) == (0, ["ROOT count=0", "  plain count=3"])
    assert done.errors.count("hook Broken.enter failed: ValueError: oh") == 1
    assert done.errors.count("hook Broken.deactivate failed: KeyError: 'no'") == 1


def test_one_instrumentation_hook_is_active_at_a_time(run: Run) -> None:
    done = run("""
from bragg.proton.hooks import HookManager, InstrumentationHook, LaunchHook
HookManager.register(InstrumentationHook("default"), 0)
HookManager.register(LaunchHook(), 0)
assert [type(hook) for hook in HookManager.active_hooks] == [LaunchHook, InstrumentationHook]
try:
    InstrumentationHook("").activate()
except RuntimeError as error:
    print(error)
HookManager.unregister()
assert not HookManager.active_hooks
""")
    assert done.output == "Only one instance of the instrumentation hook can be active at a time.\n", done.errors


def test_marks_inside_kernels_compile_to_nothing(run: Run) -> None:
    done = run("""
import bragg.proton.language as pl
@triton.jit
def marked(x, n: tl.constexpr):
    pl.enter_scope("a")
    event = pl.allocate_event("e")
    pl.start_event(event)
    with pl.scope("b"):
        for i in range(2):
            tl.store(x + i + tl.arange(0, n), 1.0)
            pl.end_event(event)
    pl.exit_scope("a")
@triton.jit
def unmarked(x, n: tl.constexpr):
    for i in range(2):
        tl.store(x + i + tl.arange(0, n), 1.0)
import re
texts = [kernel[(1,)](x, 16).asm["ptx"].replace("unmarked", "marked") for kernel in (marked, unmarked)]
code = [re.findall(r"^\\t(?:@\\S+ )?([a-z]\\S*.*;)", text, re.MULTILINE) for text in texts]
assert len(code[0]) > 5 and code[0] == code[1], code
""")
    assert done.exit_code == 0, done.errors
