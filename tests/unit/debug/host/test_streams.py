"""What `torch.cuda` is where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bragg.debug.host.streams import host_streams  # noqa: E402


@pytest.fixture
def cuda() -> Iterator[dict[str, Any]]:
    before = torch.get_rng_state()
    yield host_streams(torch)
    torch.set_rng_state(before)


def test_the_state_of_a_generator_is_seed_and_offset_as_on_a_gpu(cuda: dict[str, Any]) -> None:
    (generator,) = cuda["default_generators"]
    cuda["manual_seed_all"](7)
    state = generator.get_state()
    assert (state.dtype, state.view(torch.int64).tolist()) == (torch.uint8, [7, 0])
    state.view(torch.int64)[1] += 12
    generator.set_state(state)
    assert (generator.initial_seed(), generator.get_offset()) == (7, 12)
    generator.manual_seed(7)
    assert generator.get_state().view(torch.int64).tolist() == [7, 0]


def test_numbers_of_tensors_on_cuda_begin_anew_with_a_seed(cuda: dict[str, Any]) -> None:
    cuda["manual_seed"](3)
    first = torch.rand(4)
    cuda["manual_seed"](3)
    assert torch.equal(first, torch.rand(4))
