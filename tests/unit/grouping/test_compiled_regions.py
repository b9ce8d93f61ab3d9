from __future__ import annotations

from typing import Any

import pytest

from bragg.grouping.compiled_regions import name_compiled_regions
from tests.support.profiles import profile_from_text

FRAMES = profile_from_text(
    "root\n  Torch-Compiled Region: 0/0 #operator\n    Torch-Compiled Region: 1/0 #operator\n      k 1us"
).tree.frames
FUNCTIONS = {
    "0/0": [["loss", "/home/me/train.py", 4], ["step", "train.py", 9]],
    "1/0": [["torch_dynamo_resume_in_loss_at_7", "train.py", 7]],
}


def test_compiled_regions_are_named_by_all_functions_that_had_their_number_and_by_graph_breaks() -> None:
    assert name_compiled_regions(FRAMES, FUNCTIONS).name[1:3] == [
        "Torch-Compiled Region: loss train.py:4 or step train.py:9 (0/0)",
        "Torch-Compiled Region: loss train.py:7 after a graph break (1/0)",
    ]


@pytest.mark.parametrize("functions", [None, 5, {}, {"0/0": "loss", "1/0": [[1, 2, 3]]}, {"0/0": []}])
def test_regions_of_unknown_functions_keep_their_number(functions: Any) -> None:
    assert name_compiled_regions(FRAMES, functions).name == FRAMES.name
