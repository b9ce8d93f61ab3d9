"""What a thread waits for the compiler is the work of the compilation."""

from __future__ import annotations

from bragg.grouping.compilations import with_compiling_as_work
from bragg.model.host_time import WAIT_TIME, own_work
from tests.support.profiles import profile_from_text


def test_waiting_for_the_compiler_is_work_of_the_compilation() -> None:
    profile = profile_from_text("""
root
  f.py:3@main
    [compile] jit_f host=1ms
      compiler.py:9@compile host=2ms
        [waiting] #state host=30ms wait=30ms
    [waiting] #state host=4ms wait=4ms
""")
    found = with_compiling_as_work(profile)
    names = [found.tree.frames.name[frame] for frame in found.tree.frame]
    assert found.own("host_time").tolist() == [0, 0, 31_000_000, 2_000_000, 0, 4_000_000]
    assert found.total(WAIT_TIME) == 4_000_000
    assert names[int(own_work(found, "host_time").argmax())] == "[compile] jit_f"


def test_other_programs_stay_as_they_are() -> None:
    profile = profile_from_text("root\n  f.py:3@main\n    [waiting] #state host=4ms wait=4ms")
    assert with_compiling_as_work(profile) is profile
