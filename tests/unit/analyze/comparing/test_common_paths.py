from __future__ import annotations

import pytest

from bragg.analyze.comparing.common_paths import common_share
from bragg.analyze.comparing.diff import By, compare_sets
from tests.support.profiles import profile_from_text


@pytest.mark.parametrize(
    ("after", "share"),
    [
        ("root\n  train\n    gemm 10us\n    copy 5us", 1.0),
        ("root\n  train\n    gemm 40us", 1.0),
        ("root\n  train\n    gemm 5us\n    add 5us", 0.5),
        ("root\n  serve\n    gemm 10us", 0.0),
    ],
)
def test_the_share_is_of_the_time_on_paths_that_both_have(after: str, share: float) -> None:
    before = profile_from_text("root\n  train\n    gemm 10us\n    copy 5us")
    paths = compare_sets([before], [profile_from_text(after)], By.PATH, "gpu_time")
    expected = share if share != 1.0 or "40us" not in after else 10 / 15
    assert common_share(paths) == pytest.approx(expected)
