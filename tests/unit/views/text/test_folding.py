from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from bragg import formats
from bragg.model import Profile
from bragg.views.text.folding import INSIDE, OWN_ROW, PART, fold_libraries, fold_marks
from bragg.views.text.folding_rules import library_of
from bragg.views.text.labels import Labels
from tests.support.profiles import profile_from_text
from tests.support.random_profiles import profiles
from tests.support.recordings import RECORDINGS, SAMPLE


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/venv/lib/python3.11/site-packages/torch/nn/module.py", "torch"),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml"),
        ("/venv/lib/python3.11/site-packages/six.py", "six"),
        ("/usr/lib/python3.12/contextlib.py", "stdlib"),
        ("/opt/lib64/python3.10/json/decoder.py", "stdlib"),
        ("<frozen importlib._bootstrap>", "stdlib"),
        ("/src/bragg/record/hooks/torch/itt_operators.py", "bragg"),
        ("/home/me/library/train.py", ""),
        ("<string>", ""),
        ("", ""),
    ],
)
def test_library_is_told_by_the_path(file: str, library: str) -> None:
    assert library_of(file) == library


def test_library_called_by_a_library_belongs_to_the_same_excursion() -> None:
    profile = profile_from_text(
        "root\n  /l/lib/python3.11/site-packages/torch/a.py:1@_a\n    /l/lib/python3.11/contextlib.py:2@b\n      k 1us"
    )
    folded = fold_libraries(profile)
    assert [folded.profile.tree.label(node) for node in range(3)] == ["root", "torch", "k"]
    assert folded.n_folded.tolist() == [0, 2, 0]


def test_an_excursion_says_which_function_was_called_if_that_is_public() -> None:
    numpy, linalg = "/l/site-packages/numpy", "/l/site-packages/numpy/linalg/_linalg.py"
    calls = [
        f"{linalg}:1@svd\n      {linalg}:2@_wrap\n        k 1us",
        f"{linalg}:7@svd\n      {linalg}:3@_kind\n        k 2us",
        f"{numpy}/a.py:1@_mean\n      {numpy}/a.py:2@_count\n        k 4us",
        f"{numpy}/b.py:1@decorated.<locals>.call\n      {numpy}/a.py:2@_count\n        k 8us",
        f"/l/lib/python3.11/contextlib.py:1@inner\n      {numpy}/a.py:2@mean\n        k 16us",
    ]
    profile = profile_from_text(
        "root\n  a.py:1@main\n" + "\n".join(f"    {call}" for call in calls).replace(" 1us", " 1us host=1us")
    )
    folded = fold_libraries(profile)
    tree, total = folded.profile.tree, folded.profile.tree.sum_up(folded.profile.own("gpu_time"))
    below = {folded.name(node, Labels(tree.frames)): total[node] / 1e3 for node in tree.children(1).tolist()}
    assert below == {"[numpy: svd]": 3, "[numpy: 2 frames]": 28}
    assert rows_by_marks(profile) == rows_by_folding(profile)


def test_excursion_is_named_after_its_first_package() -> None:
    importing = "  <frozen importlib._bootstrap>:1@a\n    /l/site-packages/torch/__init__.py:2@b\n      k 1us"
    running = "  /l/lib/python3.11/runpy.py:1@_a\n    /l/lib/python3.11/runpy.py:2@b\n      k 1us"
    tree = fold_libraries(profile_from_text(f"root\n{importing}\n{running}")).profile.tree
    assert [tree.label(node) for node in tree.children(0)] == ["torch", "stdlib"]


@given(profiles())
def test_profile_without_libraries_is_kept(profile: Profile) -> None:
    folded = fold_libraries(profile)
    folded.profile.check()
    assert not folded.n_folded.any()
    assert {name: folded.profile.total(name) for name in ("gpu_time",) if name in profile.metrics} == {
        name: profile.total(name) for name in ("gpu_time",) if name in profile.metrics
    }


def labels(profile: Profile, *keep: str) -> list[str]:
    folded = fold_libraries(profile, [re.compile(pattern) for pattern in keep]).profile
    return [folded.tree.label(node) for node in range(1, len(folded.tree))]


HF = "/l/lib/python3.11/site-packages/transformers"
TORCH = "/l/lib/python3.11/site-packages/torch"
MODEL = f"""
root
  {TORCH}/nn/modules/module.py:1@Module._wrapped_call_impl
    {HF}/generic.py:1@wrapper
      {HF}/modeling_llama.py:5@LlamaDecoderLayer.forward
        {TORCH}/nn/modules/module.py:1@Module._call_impl
          {HF}/modeling_llama.py:7@LlamaAttention.forward
            {HF}/sdpa.py:3@sdpa_attention
              k 1us
"""


def test_what_models_compute_stays_whatever_package_it_lives_in() -> None:
    assert labels(profile_from_text(MODEL)) == [
        "torch",
        f"{HF}/modeling_llama.py:5@LlamaDecoderLayer.forward",
        f"{TORCH}/nn/modules/module.py:1@Module._call_impl",
        f"{HF}/modeling_llama.py:7@LlamaAttention.forward",
        f"{HF}/sdpa.py:3@sdpa_attention",
        "k",
    ]


def test_users_say_what_else_stays() -> None:
    assert f"{HF}/generic.py:1@wrapper" in labels(profile_from_text(MODEL), "wrapper")


def test_plumbing_of_recorded_modules_is_theirs() -> None:
    plumbing = f"  {TORCH}/module.py:1@Module._call_impl\n      {HF}/modeling_llama.py:5@Layer.forward\n        "
    profile = profile_from_text(f"root\n  model.layer\n  {plumbing}{HF}/a.py:2@inner\n          k 1us")
    described = replace(profile, meta={"attributes": {"model.layer": {"module": "Layer"}}})
    assert labels(described) == ["model.layer", "k"]


SITE = "/l/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    "frames",
    [
        [f"{SITE}/nvtx/nvtx.py:227@annotate.__enter__"],
        [
            "/l/lib/python3.11/contextlib.py:137@_GeneratorContextManager.__enter__",
            f"{SITE}/torch/cuda/nvtx.py:129@range",
        ],
        [
            f"{SITE}/torch/autograd/profiler.py:800@record_function.__enter__",
            f"{SITE}/torch/_ops.py:9@OpOverload.__call__",
        ],
    ],
)
def test_what_begins_a_scope_is_a_part_of_the_function_that_does_so(frames: list[str]) -> None:
    path = ["root", "train.py:9@step", *frames, "forward", f"{SITE}/numpy/a.py:1@mean", "k 1us"]
    profile = profile_from_text("\n".join("  " * depth + name for depth, name in enumerate(path)))
    tree = fold_libraries(profile).profile.tree
    assert [tree.frames.name[frame] for frame in tree.frame.tolist()] == ["root", "step", "forward", "mean", "k"]
    marks = fold_marks(profile)
    assert marks.mark.tolist() == [OWN_ROW, OWN_ROW, *[PART] * len(frames), OWN_ROW, OWN_ROW, OWN_ROW]


def test_a_library_that_also_annotates_is_an_excursion() -> None:
    path = ["root", f"{SITE}/trainer/a.py:1@fit", f"{SITE}/nvtx/nvtx.py:227@annotate.__enter__", "forward", "k 1us"]
    profile = profile_from_text("\n".join("  " * depth + name for depth, name in enumerate(path)))
    tree = fold_libraries(profile).profile.tree
    assert [tree.frames.name[frame] for frame in tree.frame.tolist()] == ["root", "trainer: fit", "forward", "k"]


def test_wrappers_of_forward_and_the_compiler_s_are_plumbing() -> None:
    convert = f"root\n  {HF}/operations.py:1@convert_outputs.<locals>.forward\n    {HF}/b.py:2@inner\n      k 1us"
    assert labels(profile_from_text(convert)) == ["transformers", "k"]
    compiler = (
        f"root\n  {TORCH}/_dynamo/eval_frame.py:1@Optimized.forward\n    /tmp/xy/c{'a2' * 25}b.py:2@call\n      k 1us"
    )
    assert labels(profile_from_text(compiler)) == ["torch: Optimized.forward", "k"]


def test_a_function_that_calls_itself_is_one_node() -> None:
    text = """root
  a.py:9@main
    a.py:1@fib host=1ms
      a.py:2@fib host=2ms
        a.py:2@fib host=4ms
          b.py:2@fib host=8ms
            a.py:2@fib host=16ms"""
    folded = fold_libraries(profile_from_text(text)).profile
    shown = {folded.tree.label(node): folded.own("host_time")[node] for node in range(len(folded.tree))}
    assert shown["a.py:1@fib"] == 7e6
    assert sorted(shown.values())[-3:] == [7e6, 8e6, 16e6]
    assert len(folded.tree) == 5


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("step@9 matmul step@11 inner step@12 mul@3", "step@9 matmul inner mul@3"),
        ("step@9 matmul inner step@12 mul@3", "step@9 matmul inner mul@3"),
        ("step@9 start@5 opened step@10 mul@3", "step@9 start@5 opened mul@3"),
        ("main@1 batches@5 loading main@2 mul@3", "main@1 batches@5 loading mul@3"),
        ("main@1 batches@5 loading batches@6 mul@3", "main@1 batches@5 loading mul@3"),
        ("step@9 matmul step@11 step@9 matmul step@11 mul@3", "step@9 matmul matmul mul@3"),
        ("step@9 matmul mul@3 step@9", "step@9 matmul mul@3 step@9"),
        ("matmul step@1 mul@3", "matmul step@1 mul@3"),
    ],
    ids=["nested", "nested_at_once", "helper", "consumer", "generator", "recursion", "called_again", "outermost"],
)
def test_the_function_around_a_scope_is_not_repeated_below_it(recorded: str, shown: str) -> None:
    """`name@line` is a function, `name` a scope."""

    def rows(path: str) -> list[str]:
        return [f"t.py:{line}@{name}" if line else name for name, _, line in (s.partition("@") for s in path.split())]

    lines = ["root", *("  " * (depth + 1) + row for depth, row in enumerate(rows(recorded)))]
    profile = profile_from_text("\n".join(lines) + " host=1us")
    assert labels(profile) == rows(shown)
    assert rows_by_marks(profile) == rows_by_folding(profile)


def test_own_time_of_the_function_around_a_scope_is_the_scope_s() -> None:
    lines = "      t.py:10@step host=1ms\n      t.py:11@step host=2ms\n        t.py:3@mul host=4ms"
    folded = fold_libraries(profile_from_text(f"root\n  t.py:9@step\n    matmul\n{lines}")).profile
    assert folded.own("host_time")[1:].tolist() == [0, 3e6, 4e6]


@pytest.mark.parametrize("path", [*RECORDINGS, SAMPLE], ids=lambda path: path.stem)
def test_marks_fold_the_paths_of_real_programs_as_the_tree_does(path: Path) -> None:
    profile = formats.load(path)
    assert rows_by_marks(profile) == rows_by_folding(profile)


def test_marks_tell_excursions_single_frames_and_recursion() -> None:
    torch = "/l/site-packages/torch"
    profile = profile_from_text(
        f"root\n  {torch}/a.py:1@_a\n    {torch}/b.py:2@b\n      k 1us\n"
        f"  {torch}/c.py:3@_c\n    m 1us\n  train.py:4@step\n    train.py:5@step\n      {torch}/d.py:6@d\n        n 1us"
    )
    marks = fold_marks(profile)
    torch_row = marks.libraries.index("torch")
    # `c` is the same excursion as `a` and `b`: their row is one. `d` is the only frame of its excursion.
    expected = {"root": OWN_ROW, "_a": torch_row, "b": INSIDE, "k": OWN_ROW, "_c": torch_row, "m": OWN_ROW}
    assert marks.mark.tolist() == [*expected.values(), OWN_ROW, PART, OWN_ROW, OWN_ROW]


Rows = dict[tuple[str, ...], tuple[float, int]]


def rows_by_folding(profile: Profile) -> Rows:
    folded = fold_libraries(profile)
    tree, own = folded.profile.tree, folded.profile.own("host_time")
    names = [folded.name(node, Labels(tree.frames)) for node in range(len(tree))]
    found: Rows = {}
    for node in range(len(tree)):
        path = tuple(re.sub(r"\d+ frames?\]", "]", names[each]) for each in tree.path(node))
        value, length = found.get(path, (0.0, 0))
        found[path] = (value + np.nan_to_num(own[node]), max(length, int(folded.n_folded[node])))
    return found


def rows_by_marks(profile: Profile) -> Rows:
    """As the page does it: `mergedRows` of web/src/views/flame/forest.ts."""
    tree, own, marks = profile.tree, profile.own("host_time"), fold_marks(profile)
    labels = Labels(tree.frames)
    path: list[tuple[str, ...]] = []
    length = np.zeros(len(tree), np.int64)
    found: Rows = {}
    for node, mark in enumerate(marks.mark.tolist()):
        above = path[tree.parent[node]] if node else ()
        library = marks.libraries[mark] if mark >= 0 else ""
        name = (
            f"[{library}]" if ": " in library else f"[{library}: ]" if library else labels.name(int(tree.frame[node]))
        )
        path.append(above if mark in (INSIDE, PART) else (*above, name))
        if mark != OWN_ROW:
            before = 0 if mark >= 0 else length[tree.parent[node]]
            length[node] = before + (mark != PART)
        value, longest = found.get(path[node], (0.0, 0))
        found[path[node]] = (value + np.nan_to_num(own[node]), max(longest, int(length[node])))
    return found
