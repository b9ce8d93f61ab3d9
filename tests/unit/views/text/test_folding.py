from __future__ import annotations

import pytest
from hypothesis import given

from bragg.model import Profile
from bragg.views.text.folding import fold_libraries, library_of
from tests.support.profiles import profile_from_text
from tests.support.random_profiles import profiles


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
        "root\n  /l/lib/python3.11/site-packages/torch/a.py:1@a\n    /l/lib/python3.11/contextlib.py:2@b\n      k 1us"
    )
    folded = fold_libraries(profile)
    assert [folded.profile.tree.label(node) for node in range(3)] == ["root", "torch", "k"]
    assert folded.n_folded.tolist() == [0, 2, 0]


def test_excursion_is_named_after_its_first_package() -> None:
    importing = "  <frozen importlib._bootstrap>:1@a\n    /l/site-packages/torch/__init__.py:2@b\n      k 1us"
    running = "  /l/lib/python3.11/runpy.py:1@a\n    /l/lib/python3.11/runpy.py:2@b\n      k 1us"
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
