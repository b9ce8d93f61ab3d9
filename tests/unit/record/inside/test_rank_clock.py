from __future__ import annotations

import socket
import threading

import pytest

from bragg.core import core
from bragg.record.inside import metadata, rank_clock
from bragg.record.inside.rank_clock import ask, meet, part, serve


@pytest.fixture(autouse=True)
def nobody_met_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_asked", {})
    for name in ("_asked", "_served", "_exchanges"):
        monkeypatch.setattr(rank_clock, name, [])
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")


def test_a_process_that_asks_itself_is_ahead_by_less_than_the_time_on_the_way() -> None:
    before_ns = core.now_ns()
    found = ask(serve())
    assert found is not None
    when_ns, ahead_ns, way_ns = found
    assert before_ns < when_ns <= core.now_ns()
    assert 0 <= way_ns < 50_000_000
    assert abs(ahead_ns) <= way_ns / 2 + 20_000  # the kernel's stamps are of another clock, read beside it


def test_nobody_that_answers_is_not_waited_for() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        assert ask(f"127.0.0.1:{silent.getsockname()[1]}:7") is None


def test_questions_without_the_token_get_no_answer() -> None:
    host, port, token = serve().split(":")
    assert ask(f"{host}:{port}:{int(token) ^ 1}") is None


def test_ranks_of_other_hosts_ask_when_they_meet_and_when_they_part(monkeypatch: pytest.MonkeyPatch) -> None:
    store: list[str] = []
    meet(0, store.append, lambda: None)
    meet(0, store.append, lambda: None)
    assert store[0] == store[1]  # one thread answers all process groups
    monkeypatch.setattr(rank_clock, "boot_id", lambda: "another boot")
    meet(1, store.append, lambda: store[0])
    part()
    assert len(metadata.at_stop(is_end=False)["clock_exchanges"]) == 2
    assert len(metadata.at_stop(is_end=True)["clock_exchanges"]) == 3


def test_ranks_of_one_boot_ask_nothing() -> None:
    store: list[str] = []
    meet(0, store.append, lambda: None)
    meet(1, store.append, lambda: store[0])
    part()
    assert "clock_exchanges" not in metadata.at_stop()


def test_a_rank_that_finds_no_address_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_clock, "_FIND_S", 0.01)
    meet(1, lambda _: None, lambda: None)
    part()
    assert "clock_exchanges" not in metadata.at_stop()


def test_a_name_that_no_resolver_answers_for_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(rank_clock, "_FIND_S", 0.01)
    monkeypatch.setattr(rank_clock, "boot_id", lambda: "another boot")
    monkeypatch.setattr(socket, "gethostbyname", lambda _: never.wait(30))
    meet(1, lambda _: None, lambda: "far.invalid:1:7 boot")
    assert "clock_exchanges" not in metadata.at_stop()
    never.set()
