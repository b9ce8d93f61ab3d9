from __future__ import annotations

import json
from pathlib import Path

from bragg.record.launcher.hang_watch import Group, Standing, hang_lines, read_standings

_STACK = ("/usr/lib/python3.11/threading.py:327@wait", "/home/me/data.py:7@next_batch", "/home/me/train.py:20@main")


def _rank(number: int, entered: int, ago_s: float, group: str = "group 0 of 4") -> Standing:
    return Standing(number, _STACK, {group: Group(entered, "allreduce", ago_s)} if entered else {})


def test_ranks_that_have_entered_fewer_are_named_with_their_line() -> None:
    ranks = [_rank(0, 17, 31.0), _rank(1, 16, 40.0), _rank(2, 17, 33.0), _rank(3, 17, 32.0)]
    assert hang_lines(ranks, 30.0) == [
        "3 ranks wait for 31 s in allreduce, collective 17 of group 0 of 4; rank 1 has not entered it",
        "  rank 1 stands at data.py:7@next_batch, after collective 16",
        "  rank 0 waits at data.py:7@next_batch",
    ]


def test_a_rank_that_never_entered_a_group_of_all_is_missing() -> None:
    ranks = [_rank(0, 1, 60.0), _rank(1, 1, 60.0), _rank(2, 0, 0.0), _rank(3, 0, 0.0)]
    assert hang_lines(ranks, 30.0)[0].endswith("; ranks 2, 3 have not entered it")


def test_ranks_that_are_not_in_a_group_are_not_missed() -> None:
    ranks = [
        _rank(0, 5, 60.0, "group tp0 of 2"),
        _rank(1, 5, 60.0, "group tp0 of 2"),
        _rank(2, 0, 0.0),
        _rank(3, 0, 0.0),
    ]
    assert hang_lines(ranks, 30.0) == []


def test_nobody_is_named_before_the_time_is_over_or_while_all_are_in() -> None:
    assert hang_lines([_rank(0, 17, 29.0), _rank(1, 16, 40.0)], 30.0) == []
    assert hang_lines([_rank(0, 17, 99.0), _rank(1, 17, 98.0)], 30.0) == []
    assert hang_lines([], 30.0) == []


def test_what_ranks_have_written_is_read_and_half_of_it_is_not(tmp_path: Path) -> None:
    told = {"rank": 1, "stack": ["a.py:1@f"], "groups": {"gloo": {"entered": 3, "last": "gloo:all_reduce", "ago_s": 5}}}
    (tmp_path / "7.standing").write_text(json.dumps(told))
    (tmp_path / "8.standing").write_text('{"rank": 2, "gro')
    (tmp_path / "9.standing").write_text('{"stack": []}')
    (found,) = read_standings(tmp_path)
    assert (found.rank, found.line, found.groups["gloo"].entered) == (1, "a.py:1@f", 3)
    assert 5 <= found.groups["gloo"].ago_s < 60
