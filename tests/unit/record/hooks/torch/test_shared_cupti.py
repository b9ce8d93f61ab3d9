from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from bragg.record.hooks.torch import shared_cupti

NAME = "BRAGG_CUPTI_SHARED"


def share(monkeypatch: pytest.MonkeyPatch, *, initialized: bool) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: initialized)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]
    shared_cupti.share_cupti(ModuleType("torch.profiler._cuspy"))


def test_a_profiler_of_version_2_that_comes_before_cuda_is_shared_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    share(monkeypatch, initialized=False)
    assert os.environ.pop(NAME) == "1"
    assert capsys.readouterr().err == ""


def test_one_that_comes_later_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    share(monkeypatch, initialized=True)
    assert NAME not in os.environ
    assert f"set {NAME}=1 before the program starts" in capsys.readouterr().err


@pytest.mark.parametrize("choice", ["0", "1"])
def test_the_choice_of_the_user_stays(
    choice: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(NAME, choice)
    for initialized in (False, True):
        share(monkeypatch, initialized=initialized)
    assert (os.environ[NAME], capsys.readouterr().err) == (choice, "")
