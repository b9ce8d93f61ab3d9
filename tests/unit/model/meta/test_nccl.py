from __future__ import annotations

from typing import Any

from bragg.model.meta.nccl import nccl_of, united_nccl


def told(*calls: dict[str, Any], group: str = "c0ffee") -> dict[str, Any]:
    return {"interface": 5, "communicators": [{"group": group, "rank": 1, "n_ranks": 4, "calls": list(calls)}]}


def call(function: str = "AllReduce", **facts: Any) -> dict[str, Any]:
    return {"function": function, "dtype": "bf16", "count": 8, "calls": 1, "timed": 0, **facts}


def test_it_is_none_unless_asked_for() -> None:
    assert nccl_of({}) is None
    assert nccl_of({"nccl": []}) is None


def test_what_nccl_counts_in_parts_is_counted_as_the_input_of_a_rank() -> None:
    found = nccl_of({"nccl": told(call("ReduceScatter"), call("AllReduce"), call("Mystery", dtype="elements"))})
    assert found is not None
    assert [(each.operation, each.count, each.size_bytes) for each in found.calls] == [
        ("reduce-scatter", 32, 64),
        ("all-reduce", 8, 16),
        ("Mystery", 8, -1),
    ]


def test_names_leave_out_what_is_not_told() -> None:
    found = nccl_of({"nccl": told(call(), call("Recv", peer=3, channels=1))})
    assert found is not None
    assert [each.name for each in found.calls] == [
        "all-reduce[8 bf16, group c0ffee of 4]",
        "receive[8 bf16, group c0ffee of 4] with rank 3, 1 channel",
    ]


def test_phases_of_a_session_add_up() -> None:
    timed = {"calls": 2, "timed": 2, "gpu_ns": 50, "least_ns": 20, "most_ns": 30, "last_sequence": 1}
    later = {"calls": 3, "timed": 1, "gpu_ns": 10, "least_ns": 10, "most_ns": 10, "last_sequence": 4}
    one, other = told(call(**timed)), told(call(**later), call("Broadcast"))
    other["communicators"] += told(call(), group="da7a")["communicators"]
    found = nccl_of({"nccl": united_nccl(one, other)})
    assert found is not None
    assert [each.last_number for each in found.calls] == [4, None, None]
    sums = [(each.group, each.calls, each.timed, each.gpu_ns, each.least_ns, each.most_ns) for each in found.calls]
    assert sums == [("c0ffee", 5, 3, 60, 10, 30), ("c0ffee", 1, 0, 0, 0, 0), ("da7a", 1, 0, 0, 0, 0)]
    assert nccl_of({"nccl": united_nccl(one, told())}) == nccl_of({"nccl": one})
