"""Sessions, scopes, states and metrics of bragg.proton, in this process and without a GPU."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import bragg
import bragg.proton as proton
from tests.support.proton_runs import CPU, metadata_state, outline, run_program, start, tree

pytestmark = pytest.mark.usefixtures("finalized")


def test_numbers_of_sessions_are_consecutive_and_each_has_a_file(here: Path) -> None:
    first = start("a")
    proton.finalize(first)
    second, third = start("b"), start("c")
    proton.finalize()
    assert (second, third) == (first + 1, first + 2)
    assert {path.name for path in here.iterdir()} == {"a.hatchet", "b.hatchet", "c.hatchet"}


def test_session_without_anything_in_it_has_an_empty_tree() -> None:
    start()
    proton.finalize()
    assert json.loads(Path("x.hatchet").read_text()) == [
        {"frame": {"name": "ROOT", "type": "function"}, "metrics": {}, "children": []},
        {},
    ]


def test_metrics_of_scopes_add_up_and_keep_unit_and_kind() -> None:
    start()
    for _ in range(2):
        with proton.scope("step", {"loss": 0.5, "lat (us)(exc)": 3, "tile (pty)": 7, "shape": [1, 2]}):
            proton.enter_scope("inner", metrics={"bytes": 8.0})
            proton.exit_scope("inner", metrics={"flops8": 4})
    proton.finalize()
    assert tree() == [
        "ROOT bytes=0 flops8=0 loss=0",
        "  step lat (us)=6 loss=1.0 shape=[2, 4] tile=7",
        "    inner bytes=16 flops8=8.0",
    ]


def test_each_scope_has_values_of_one_type_and_vectors_of_one_length() -> None:
    start()
    for name, value in (("int", 2), ("float", 0.5), ("vector", [1, 0]), ("longer", [1, 2, 3]), ("vector", [1, 1])):
        with proton.scope(name, {"m": value, "huge": 1 << 70}):
            pass
    with pytest.raises(ValueError, match=r"size mismatch for valueId \d \(m\): current=3, new=2"):
        proton.enter_scope("longer", metrics={"m": [1, 2]})
    proton.finalize()
    assert tree() == [
        "ROOT huge=0 m=0",
        f"  int huge={2.0**70} m=2.0",
        f"  float huge={2.0**70} m=0.5",
        f"  vector huge={2.0**71} m=[2, 1]",
        f"  longer huge={2.0**70} m=[1, 2, 3]",
    ]


def test_decorated_function_is_a_scope_of_its_own_in_each_thread() -> None:
    @proton.scope("work", {"calls": 1})
    def work(depth: int) -> int:
        return work(depth - 1) if depth else 0

    start()
    threads = [threading.Thread(target=work, args=(1,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proton.finalize()
    assert tree() == ["ROOT calls=0", "  work calls=3", "    work calls=3"]


def test_one_scope_object_is_shared_by_threads_and_nests_in_itself() -> None:
    shared = proton.scope("shared", {"n": 1})
    start()

    def work() -> None:
        with shared, shared:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proton.finalize()
    assert tree() == ["ROOT n=0", "  shared n=4", "    shared n=4"]


def test_state_is_the_innermost_frame_and_a_block_restores_the_one_before() -> None:
    start()
    proton.enter_scope("outer")
    with proton.state("forward"):
        proton.enter_scope("layer", metrics={"a": 1.0})
        with proton.metadata_state("kernel"):
            proton.enter_scope("asked", metrics={"b": 1.0})
            proton.exit_scope()
        proton.exit_scope(metrics={"a": 1.0})
    proton.enter_state("one")
    proton.enter_state("two")
    proton.exit_state()
    proton.exit_scope(metrics={"c": 1.0})
    proton.finalize()
    *outer, state = metadata_state("kernel", 4)
    assert tree() == [
        "ROOT a=0 b=0 c=0",
        "  outer c=1.0",
        "    layer",
        "      forward a=2.0",
        "      asked",
        *outer,
        f"{state} b=1.0",
    ]


def test_scope_that_is_timed_on_the_cpu_has_a_metric_of_its_own() -> None:
    start()
    with proton.cpu_timed_scope("outer"), proton.cpu_timed_scope("inner", {"n": 1}):
        pass
    proton.finalize()
    (outer,) = json.loads(Path("x.hatchet").read_text())[0]["children"]
    (inner,) = outer["children"]
    assert outer["metrics"]["cpu_time (ns)"] > inner["metrics"]["cpu_time (ns)"] > 0
    with pytest.raises(ValueError, match="'cpu_time' is reserved"):
        proton.cpu_timed_scope("x", {"cpu_time": 1})


def test_paused_session_records_nothing() -> None:
    session = start()
    proton.deactivate(session)
    with proton.scope("paused", {"a": 1.0}):
        pass
    proton.activate(session)
    with proton.scope("recorded", {"a": 1.0}):
        pass
    proton.finalize()
    assert tree() == ["ROOT a=0", "  recorded a=1.0"]


def test_same_name_goes_on_with_the_same_session() -> None:
    session = start()
    proton.deactivate(session)
    assert start() == session
    with proton.scope("again"):
        pass
    with pytest.warns(RuntimeWarning, match="goes on with the arguments that it was started with"):
        assert start(context="python") == session
    proton.finalize()
    assert tree() == ["ROOT", "  again"]


def test_other_mode_on_the_same_profiler_is_refused() -> None:
    session = start()
    proton.deactivate(session)
    with pytest.raises(RuntimeError, match="same profiler but a different mode than existing sessions"):
        start("y", mode="periodic_flushing")


def test_depth_counts_scopes_and_begins_anew_after_the_last_session() -> None:
    assert proton.context.depth() is None
    session = start()
    with proton.scope("a"):
        assert proton.context.depth(session) == 1
        with proton.state("s"):
            assert proton.context.depth(session) == 1
        proton.finalize()
        session = start("y")
        assert proton.context.depth(session) == 0
        proton.enter_scope("b")
    assert proton.context.depth(session) == 1
    proton.finalize()
    assert tree() == ["ROOT", "  a"]
    assert tree("y.hatchet") == ["ROOT", "  b"]


def test_decorator_pauses_the_session_also_when_the_function_raises() -> None:
    @proton.profile(name="x", backend="cpu")
    def work(fail: bool) -> None:
        with proton.scope("work"):
            if fail:
                raise ZeroDivisionError

    work(False)
    with pytest.raises(ZeroDivisionError):
        work(True)
    with proton.scope("outside"):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  work"]


def test_program_without_a_session_pays_nothing_and_gets_no_file(here: Path) -> None:
    scope = proton.scope("off", {"a": 1})
    with scope:
        pass
    assert scope.id is None
    assert proton.enter_scope("off") is None
    assert proton.exit_scope() is None
    assert not list(here.iterdir())


def test_texts_are_properties() -> None:
    start()
    with proton.scope("a", {"device (pty)": "H200", "n (exc)": "two"}), proton.scope("b", {"device (pty)": 3}):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  a device=H200 n=two", "    b device=3"]


def test_more_in_parentheses_than_unit_and_kind_is_part_of_the_name() -> None:
    start()
    with proton.scope("a", {"a (s)(ms)(exc)": 2, "x(y)z": 3}):
        pass
    proton.finalize()
    assert tree() == ["ROOT x(y)z=0", "  a a (s)(ms)=2 x(y)z=3"]


def test_numbers_that_are_not_finite_are_null() -> None:
    start()
    with proton.scope("a", {"nan": float("nan"), "inf": float("inf"), "m": 1.0}):
        pass
    proton.finalize()
    assert tree() == ["ROOT inf=0 m=0 nan=0", "  a inf=None m=1.0 nan=None"]
    read = bragg.load("x.hatchet")
    assert ({name: read.total(name) for name in read.metrics}, read.meta.get("text_metrics")) == (
        {"inf": 0, "m": 1, "nan": 0},
        None,
    )


def test_result_is_printed_when_the_name_says_so(tmp_path: Path) -> None:
    program = CPU + "proton.start('-', backend='cpu')\nwith proton.scope('a', {'n': 1}): pass\nproton.finalize()"
    run = run_program(tmp_path, program)
    assert outline(json.loads(run.output)[0]) == ["ROOT n=0", "  a n=1"]
    assert run.files() == set()


def test_session_that_is_left_running_is_written_at_exit(tmp_path: Path) -> None:
    program = CPU + "proton.start('x', backend='cpu')\nwith proton.scope('a'): raise SystemExit(3)"
    run = run_program(tmp_path, program)
    assert (run.exit_code, run.errors, outline(run.tree())) == (3, "", ["ROOT", "  a"])


def test_forked_child_leaves_the_session_to_its_parent(tmp_path: Path) -> None:
    program = """
        import bragg.proton as proton, os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Of a fork beside threads.
        proton.start("x", backend="cpu")
        child = os.fork()
        with proton.scope("parent" if child else "child"): pass
        if not child: sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        proton.finalize()
    """
    run = run_program(tmp_path, program)
    assert (run.exit_code, run.errors, outline(run.tree())) == (0, "", ["ROOT", "  parent"])


def test_start_needs_no_gpu_and_no_framework(tmp_path: Path) -> None:
    program = (
        CPU + "import sys\nproton.start('x')\nproton.finalize()\nassert not {'torch', 'triton'} & set(sys.modules)"
    )
    run = run_program(tmp_path, program)
    assert (run.exit_code, run.errors, run.files()) == (0, "", {"x.hatchet"})


def test_ranges_of_nvtx_are_frames_unless_they_are_switched_off(tmp_path: Path) -> None:
    pytest.importorskip("nvtx")
    program = """
        import os
        import bragg.proton as proton
        for name, switch in (("default", ""), ("on", "1"), ("off", "0")):
            os.environ["TRITON_ENABLE_NVTX"] = switch
            proton.start(name, backend="cpu")
            import nvtx
            with proton.scope("outer"), nvtx.annotate("range"), proton.scope("inner"): pass
            proton.finalize()
    """
    run = run_program(tmp_path, program)
    assert run.exit_code == 0, run.errors
    with_range = ["ROOT", "  outer", "    range", "      inner"]
    assert outline(run.tree("default.hatchet")) == outline(run.tree("on.hatchet")) == with_range
    assert outline(run.tree("off.hatchet")) == ["ROOT", "  outer", "    inner"]
