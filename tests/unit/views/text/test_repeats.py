"""What is repeated is one row: layers, numbered steps, paths of captures."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

from hypothesis import given

from bragg.model import Profile
from bragg.views.text.folding import fold_libraries
from bragg.views.text.repeats import with_repeats_folded
from tests.support.profiles import profile_from_text, tree_to_text
from tests.support.random_profiles import profiles

TORCH = "/l/lib/python3.11/site-packages/torch"


def folded(text: str, modules: dict[str, str] | None = None) -> str:
    profile = profile_from_text(dedent(text))
    attributes = {name: {"module": kind} for name, kind in (modules or {}).items()}
    found = with_repeats_folded(fold_libraries(replace(profile, meta={"attributes": attributes})), "gpu_time")
    found.profile.check()
    assert found.profile.total("gpu_time") == profile.total("gpu_time")
    return tree_to_text(found.profile).strip()


def test_layers_are_one_row_and_so_is_what_stands_below_them() -> None:
    text = """
        root
          m
            m.h.0
              m.h.0.attn
                k 1us
            m.h.1
              m.h.1.attn
                k 5us
            m.h.2
              m.h.2.attn
                k 2us
              m.h.2.mlp
                k 1us"""
    assert folded(text, {f"m.h.{n}": "Block" for n in range(3)}).splitlines() == [
        "root",
        "  m",
        "    Block x 3: m.h.N, longest 1",
        "      m.h.N.attn",
        "        k 8us x3",
        "      m.h.N.mlp",
        "        k 1us",
    ]


def test_layers_within_layers_are_one_row_each() -> None:
    layers = "".join(
        f"\n  m.{a}\n    m.{a}.b.{b}\n      k 1us" if not b else f"\n    m.{a}.b.{b}\n      k 1us"
        for a in range(3)
        for b in range(3)
    )
    assert folded(f"root{layers}").splitlines() == [
        "root",
        "  m.N x 3, longest 0",
        "    m.N.b.N x 3, longest 0",
        "      k 9us x9",
    ]


def test_numbered_steps_are_one_row_and_two_of_a_kind_are_not() -> None:
    assert folded("root\n  Step.0\n    k 1us\n  Step.1\n    k 3us\n  Step.2\n    k 2us").splitlines()[1] == (
        "  Step.N x 3, longest 1"
    )
    pair = "root\n  Step.0\n    k 1us\n  Step.1\n    k 3us"
    assert sorted(folded(pair).splitlines()[1::2]) == ["  Step.0", "  Step.1"]


def test_numbers_of_kernels_and_within_words_tell_things_apart() -> None:
    text = "root\n  gemm_1 1us\n  gemm_2 1us\n  gemm_3 1us\n  conv1\n    k 1us\n  conv2\n    k 1us\n  conv3\n    k 1us"
    assert len(folded(text).splitlines()) == len(text.splitlines())


def test_the_path_of_a_capture_is_told_once() -> None:
    text = f"""
        root
          train.py:1@main
            forward
              {TORCH}/graphs.py:9@replay
                <captured_at> #state
                  train.py:1@main
                    {TORCH}/capture.py:3@record
                      forward
                        layer
                          k 1us
                  other.py:1@warm
                    k 2us"""
    lines = folded(text).splitlines()
    assert lines[:5] == [
        "root",
        "  train.py:1@main",
        "    forward",
        f"      {TORCH}/graphs.py:9@replay",
        "        <captured_at>",
    ]
    assert sorted(lines[5::2]) == ["          layer", "          other.py:1@warm"]
    assert sorted(lines[6::2]) == ["            k 1us", "            k 2us"]


@given(profiles())
def test_nothing_is_lost(profile: Profile) -> None:
    found = with_repeats_folded(fold_libraries(profile), "gpu_time")
    found.profile.check()
    for name in profile.metrics:
        if name in ("gpu_time", "host_time"):
            assert found.profile.total(name) == profile.total(name)
