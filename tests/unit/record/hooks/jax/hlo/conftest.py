"""What tests of compiled JAX programs share."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from bragg.record.hooks.jax.jacobians import mark_jacobians


@pytest.fixture
def marked_jacobians() -> Iterator[None]:
    """Jacobians are told from other computations in what JAX compiles."""
    undo = mark_jacobians(importlib.import_module("jax._src.api"))
    assert undo is not None
    yield
    undo()
