from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.grouping.device_groups import group_on, group_text


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({0: [0]}, "devices 0"),
        ({0: [1, 0]}, "devices 0,1"),
        ({0: range(8)}, "devices 0-7"),
        ({1: range(1, 1024, 2)}, "devices 1-1023:2"),
        ({0: [0, 1, 8, 9]}, "devices 0,1,8,9"),
        ({0: [0, 2], 2: [0, 2]}, "devices 0,2"),
        ({3: [1, 3], 0: [0, 2], 1: [1, 3]}, "devices 1,3 on GPU 1,3 or devices 0,2 on GPU 0"),
    ],
)
def test_groups_are_named_by_their_devices(members: dict[int, list[int]], text: str) -> None:
    assert group_text(members) == text


def test_long_lists_have_short_names_of_their_own() -> None:
    one, other = ([0, *range(100, 200, 3), last] for last in (500, 501))
    name = group_text({0: one})
    assert name.startswith("devices 0…500 #")
    assert len(name) < 40
    assert group_text({0: [*reversed(one)]}) == name != group_text({0: other})


@given(st.dictionaries(st.integers(0, 15), st.sets(st.integers(0, 99), min_size=1), min_size=1))
def test_each_gpu_finds_the_group_that_it_is_in(members: dict[int, set[int]]) -> None:
    text = group_text({gpu: list(ids) for gpu, ids in members.items()})
    for gpu, ids in members.items():
        assert group_on(text, gpu) == group_text({gpu: list(ids)})


def test_groups_of_others_keep_their_names() -> None:
    assert group_on("mesh_tp or none", 0) == "mesh_tp or none"
    assert group_on("0", 3) == "0"
