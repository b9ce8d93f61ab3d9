"""Ranges and marks of the `nvtx` package, recorded in processes of their own; no GPU needed."""

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from bragg.core import core
from bragg.formats import capture
from bragg.model import FrameKind, Profile, TrackKind
from bragg.record import RecordConfig
from bragg.record.environment import recording_environment

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="nvtx is not installed")


def run(tmp_path: Path, program: str, config: RecordConfig, environ: dict[str, str]) -> None:
    recorded, _ = recording_environment({**os.environ, **environ}, config, tmp_path, core.library_path())
    subprocess.run([sys.executable, "-c", dedent(program)], check=True, timeout=120, env=recorded)


def record(tmp_path: Path, program: str, *, data: str = "tree", context: str = "shadow", **environ: str) -> Profile:
    """The profile of a program that runs in the environment of a recording."""
    config = RecordConfig(backend="cpu", context=context, data=data, sample_interval_us=0)  # type: ignore[arg-type]
    run(tmp_path, program, config, environ)
    (part,) = tmp_path.glob("*.part")
    profile = capture.read(part)
    profile.check()
    assert profile.meta["capture"]["complete"]
    assert profile.meta["statistics"]["dropped_events"] == 0
    return profile


def counted(profile: Profile, metric: str) -> Counter[tuple[str, ...]]:
    """How often each path was seen, where it was."""
    tree = profile.tree
    counts = profile.own(metric).tolist()
    return Counter(
        {
            tuple(tree.label(above) for above in tree.path(node)[1:]): count
            for node, count in enumerate(counts)
            if count > 0
        }
    )


def kinds(profile: Profile) -> dict[str, FrameKind]:
    return {profile.tree.label(node): FrameKind(profile.tree.kind[node]) for node in range(1, len(profile.tree))}


def test_ranges_of_all_domains_nest_with_scopes(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import bragg, nvtx

        @nvtx.annotate("decorated", domain="library")
        def decorated():
            with bragg.scope("innermost"):
                pass

        for _ in range(3):
            with bragg.scope("epoch"), nvtx.annotate("step"):
                nvtx.push_range("load", domain="io")
                decorated()
                nvtx.pop_range(domain="io")
        """,
    )
    load = ("epoch", "step", "io: load")
    decorated = (*load, "library: decorated")
    expected = {("epoch",): 3, ("epoch", "step"): 3, load: 3, decorated: 3, (*decorated, "innermost"): 3}
    assert counted(profile, "host_count") == expected
    assert set(kinds(profile).values()) == {FrameKind.SCOPE}


def test_interleaved_domains_end_their_own_ranges(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import bragg, nvtx, time
        nvtx.push_range("a", domain="one")
        nvtx.push_range("b", domain="two")
        nvtx.pop_range(domain="one")
        time.sleep(0.05)
        nvtx.pop_range(domain="two")
        """,
        data="trace",
    )
    ends_ns = profile.slices.start_ns + profile.slices.duration_ns
    end_ns = dict(zip(map(profile.tree.label, profile.slices.node.tolist()), ends_ns.tolist(), strict=True))
    assert end_ns["two: b"] - end_ns["one: a"] >= 50e6


def test_registered_strings_are_frames_of_their_text(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import nvtx
        domain = nvtx.get_domain("fast")
        attributes = domain.get_event_attributes(message="registered", color="red", category="compute", payload=1)
        for payload in range(1000):
            attributes.payload = payload
            domain.push_range(attributes)
            domain.pop_range()
        """,
    )
    assert counted(profile, "host_count") == {("fast: registered",): 1000}
    assert profile.meta["attributes"] == {"fast: registered": {"color": "#ff0000", "category": "compute"}}


def test_payloads_that_are_numbers_are_values_of_their_range(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    profile = record(
        tmp_path,
        """
        import numpy, nvtx
        for payload in (1, -4, numpy.arange(3), 0.25, 2.5):
            with nvtx.annotate("work", payload=payload):
                with nvtx.annotate("none"):
                    pass
            nvtx.mark("read", payload=10)
        """,
    )
    assert counted(profile, "host_count") == {("work",): 5, ("work", "none"): 5}
    values = {
        profile.tree.label(node): (profile.own("nvtx_payload")[node], profile.own("nvtx_payload_sum")[node])
        for node in range(len(profile.tree))
        if profile.metrics["nvtx_payload"].counted[node]
    }
    assert values == {"work": (2.5, -0.25), "read": (10, 50)}


@pytest.mark.parametrize("message", ["Grüße 你好 😀", "a\tb\n", "with: colon", "x" * 5000])
def test_messages_keep_their_text(message: str, tmp_path: Path) -> None:
    profile = record(tmp_path, f"import nvtx\nnvtx.push_range({message!r})\nnvtx.pop_range()")
    assert counted(profile, "host_count") == {(message,): 1}


def test_started_ranges_and_marks_are_markers(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import bragg, nvtx, threading, time
        with bragg.scope("serve"):
            nvtx.mark("accepted")
            first = nvtx.start_range("request", domain="http")
            second = nvtx.start_range("request", domain="http")
        time.sleep(0.05)
        nvtx.end_range(first)
        thread = threading.Thread(target=nvtx.end_range, args=(second,))
        thread.start()
        thread.join()
        nvtx.end_range(second)
        """,
        data="trace",
    )
    request = ("serve", "http: request")
    assert counted(profile, "marker_count") == {("serve", "accepted"): 1, request: 2}
    assert kinds(profile)["accepted"] == kinds(profile)["http: request"] == FrameKind.MARKER
    assert profile.own("marker_time").sum() > 2 * 50e6
    (serve,) = (row for row, node in enumerate(profile.slices.node) if profile.tree.label(node) == "serve")
    assert profile.total("host_time") == profile.slices.duration_ns[serve]
    tracks = profile.tracks.kind[profile.slices.track].tolist()
    shown = Counter(zip(map(profile.tree.label, profile.slices.node.tolist()), tracks, strict=True))
    assert shown == {
        ("serve", TrackKind.HOST_THREAD): 1,
        ("accepted", TrackKind.HOST_THREAD): 1,
        ("http: request", TrackKind.RANGES): 2,
    }


def test_every_thread_has_ranges_of_its_own(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import bragg, nvtx, threading

        def work():
            for i in range(500):
                with nvtx.annotate("outer"), bragg.scope("scope"), nvtx.annotate("inner", domain="deep"):
                    nvtx.end_range(nvtx.start_range("flight"))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    )
    inner = ("outer", "scope", "deep: inner")
    assert counted(profile, "host_count") == {("outer",): 2000, ("outer", "scope"): 2000, inner: 2000}
    assert counted(profile, "marker_count") == {(*inner, "flight"): 2000}


def test_ranges_stand_below_the_python_line_that_pushed_them(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import nvtx

        def step():
            nvtx.push_range("range")
            nvtx.pop_range()

        step()
        """,
        context="python",
    )
    tree = profile.tree
    node = next(node for node in range(len(tree)) if tree.label(node) == "range")
    names = [tree.frames.name[tree.frame[above]] for above in tree.path(node)[1:]]
    assert names == ["<module>", "step", "push_range", "range"]


def test_ranges_that_torch_numbers_are_one_operator(tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import nvtx
        for i in range(100):
            nvtx.push_range(f"aten::mm, seq = {i}, op_id = {2 * i}, sizes = [[{i}, 4]]")
            nvtx.pop_range()
        """,
    )
    assert counted(profile, "host_count") == {("aten::mm",): 100}
    assert kinds(profile) == {"aten::mm": FrameKind.OPERATOR}


@pytest.mark.parametrize("switch", [{"TRITON_ENABLE_NVTX": "0"}, {"BRAGG_NVTX": "0"}])
def test_nvtx_that_is_switched_off_is_not_recorded(switch: dict[str, str], tmp_path: Path) -> None:
    profile = record(
        tmp_path,
        """
        import bragg, nvtx
        with nvtx.annotate("range"), bragg.scope("scope"):
            nvtx.mark("mark")
        """,
        **switch,
    )
    assert counted(profile, "host_count") == {("scope",): 1}
    assert "marker_count" not in profile.metrics


def test_forked_child_records_its_own_ranges(tmp_path: Path) -> None:
    program = """
        import nvtx, os
        with nvtx.annotate("parent"):
            pass
        child = os.fork()
        if child == 0:
            with nvtx.annotate("child"):
                pass
            raise SystemExit
        assert os.waitpid(child, 0)[1] == 0
        """
    run(tmp_path, program, RecordConfig(backend="cpu", context="shadow", sample_interval_us=0), {})
    found = [counted(capture.read(part), "host_count") for part in tmp_path.glob("*.part")]
    assert sorted(found, key=str) == [{("child",): 1}, {("parent",): 1}]


def write_stand_in_of_jax(package: Path) -> None:
    """A compiler whose programs have one operation, of line 7."""
    compiler = """
        class Gpu:
            platform = "gpu"
            live_executables = list

        class Executable:
            name = "jit_loss"
            hlo_modules = lambda self: [self]
            to_string = lambda self: (
                'ENTRY %main.1 (a: f32[8], b: f32[8]) -> f32[8] {\\n'
                '  %gemm.1 = f32[8]{0} dot(f32[8]{0} %a, f32[8]{0} %b), metadata={'
                'op_name="jit(loss)/transpose(jvp(layer1))/dot_general" source_file="/home/me/train.py" source_line=7}'
            )

        def compile_or_get_cached(backend, computation):
            return Executable()
    """
    (package / "_src").mkdir(parents=True)
    for empty in (package / "__init__.py", package / "_src" / "__init__.py"):
        empty.touch()
    (package / "_src" / "compiler.py").write_text(dedent(compiler))


def test_ranges_of_xla_are_split_where_jax_is_imported(tmp_path: Path) -> None:
    """With a module that stands for JAX, which is the same to the hook; XLA pushes such ranges on a GPU alone."""
    program = f"""
        import sys
        sys.path.insert(0, {str(tmp_path / "stand-in")!r})
        import nvtx
        from jax._src import compiler
        compiler.compile_or_get_cached(compiler.Gpu, None)
        for step in (
            "XlaCompile:#module=jit_loss#",
            "XlaPassPipeline:#name=config-assigner,module=jit_loss,program_id=12#",
            "XlaPass:#name=config-assigner,module=jit_loss,program_id=12#",
            "XlaCompileBackend:#module=gemm.1,program_id=13#",
            "XlaEmitLlvmIr:#module=gemm.1,program_id=13#",
        ):
            nvtx.push_range(step, domain="TSL")
        nvtx.mark("candidate", domain="TSL")
        for _ in range(5):
            nvtx.pop_range(domain="TSL")
        nvtx.push_range("XlaModule:#prefix=jit(loss),hlo_module=jit_loss,program_id=12#", domain="TSL")
        for unique in range(3):
            thunk = "Thunk:#name=transpose(jvp(layer1))/dot_general,hlo_op=gemm.1,unique_hlo_op_id={{}}#"
            nvtx.push_range(thunk.format(unique), domain="TSL")
            nvtx.pop_range(domain="TSL")
        nvtx.pop_range(domain="TSL")
    """
    write_stand_in_of_jax(tmp_path / "stand-in" / "jax")
    profile = record(tmp_path, program)
    path = ("jit_loss", "layer1", "[backward]", "dot_general", "gemm.1")
    compile_path = ("[compile] jit_loss", "autotune", "generate code")
    assert counted(profile, "host_count") == {
        ("[compile] a program",): 1,
        **{compile_path[:depth]: 1 for depth in (1, 2, 3)},
        ("jit_loss",): 1,
        path: 3,
    }
    frames = profile.tree.frames
    places = {*zip(frames.name, frames.file, frames.line.tolist(), strict=True)}
    assert ("dot_general", "/home/me/train.py", 7) in places
    assert counted(profile, "marker_count") == {(*compile_path, "TSL: candidate"): 1}
