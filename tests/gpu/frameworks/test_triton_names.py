"""What Triton's kernels are called in recordings on a real GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from bragg.model.kernels.names import base_name
from tests.gpu.conftest import Recorded, kernel_nodes

pytestmark = pytest.mark.cuda
Run = Callable[..., Recorded]


def launches(recorded: Recorded, scope: str) -> Counter[str]:
    """Launches below a scope by kernel name."""
    profile = recorded.profile
    counts = profile.own("gpu_count")
    names: Counter[str] = Counter()
    for node in kernel_nodes(profile, under=scope):
        names[profile.tree.label(node)] += int(counts[node])
    return names


def test_specializations_are_told_apart(run: Run) -> None:
    recorded = run("triton_names.py", "--context", "shadow")
    assert launches(recorded, "copies") == {
        "copy<bn=64 w4 s3 f32>": 10,
        "copy<bn=128 w8 s3 f32>": 10,
        "copy<bn=64 w4 s3 bf16>": 10,
        "copy<bn=64 w4 s3 f32 !16:source,n>": 10,
    }


def test_launches_have_the_names_and_numbers_that_they_give(run: Run) -> None:
    recorded = run("triton_names.py", "--context", "shadow")
    assert launches(recorded, "scales") == {"scale_64": 1, "scale_128": 1}
    assert recorded.profile.total("flops32") == 64 + 128
    assert recorded.profile.total("bytes") == 8 * (64 + 128)


def test_generated_kernels_carry_their_specialization_and_operators(run: Run) -> None:
    recorded = run("generated.py", "--context", "shadow")
    names = [name for name in launches(recorded, "generated") if name.startswith("triton_")]
    assert names
    assert all(base_name(name) != name for name in names)
    attributes = recorded.profile.meta["attributes"]
    assert any("aten.relu" in attributes[name]["ATen operators"] for name in names)
