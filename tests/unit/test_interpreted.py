"""When launches of Triton are executed by the interpreter, and what of a program is left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bragg import interpreted


@pytest.mark.parametrize(
    ("settings", "backends", "is_needed"),
    [
        ({}, {"nvidia", "amd"}, True),
        ({}, {"nvidia"}, True),
        ({"TRITON_INTERPRET": "1"}, {"nvidia", "amd"}, False),
        ({}, {"nvidia", "amd", "cpu"}, False),
    ],
)
def test_programs_that_are_settled_otherwise_need_no_help(
    settings: dict[str, str], backends: set[str], is_needed: bool
) -> None:
    triton: Any = SimpleNamespace(backends=SimpleNamespace(backends=dict.fromkeys(backends)))
    assert interpreted._needs_gpu(triton, settings) is is_needed


@pytest.mark.parametrize(("importer", "is_torch"), [("torch._inductor.utils", True), ("torchvision", False)])
def test_an_import_of_triton_by_pytorch_is_none_of_the_programs(importer: str, is_torch: bool) -> None:
    names = {"__name__": importer, "ask": interpreted._is_imported_by_torch}
    exec("found = ask()", names)
    assert names["found"] is is_torch
