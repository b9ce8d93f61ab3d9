from __future__ import annotations

from pathlib import Path

import pytest

from bragg.model.meta.run import Run
from bragg.model.ranks.job import Rank

AXES = {"dp": 8, "tp": 1}


def test_rank_is_what_the_profile_tells() -> None:
    meta = {
        "rank": 17,
        "ranks": 32,
        "host": "n1",
        "pid": 4711,
        "bragg": "0.1.0",
        "command": ["python", "-u", "train.py"],
        "devices": [{"uuid": "GPU-1"}, {}],
        "job": {
            "launcher": "torchrun",
            "run_id": "a",
            "local_rank": 1,
            "restarts": 2,
            "coordinates": {"dp": 8, "tp": 1},
        },
    }
    rank = Rank.of(Run(meta), Path("job/rank00017.bragg"))
    assert rank == Rank(
        17,
        Path("job/rank00017.bragg"),
        local_rank=1,
        host="n1",
        pid=4711,
        restarts=2,
        coordinates=AXES,
        gpus=("GPU-1",),
        run_id="a",
        launcher="torchrun",
        world=32,
        bragg="0.1.0",
        program="train.py",
    )
    assert rank.label == "rank 17 (n1) dp=8 tp=1"
    assert rank.role == (("tp", 1),)
    assert Rank.from_json(rank.to_json(), rank.path) == rank


@pytest.mark.parametrize("meta", [{}, {"rank": None}, {"rank": "3"}, {"rank": -1}])
def test_process_that_is_no_rank_is_none(meta: dict[str, object]) -> None:
    assert Rank.of(Run(meta), Path("x.bragg")) is None
