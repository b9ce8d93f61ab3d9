from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bragg.errors import BadFile
from bragg.views.web.connections import Connections
from bragg.views.web.server import ProfileServer
from bragg.views.web.shelf import Shelf

TOKEN = "a-long-token"


def pack(path: Path) -> bytes:
    content = path.read_bytes()
    if content.startswith(b"bad"):
        raise BadFile(f"{path.name} is damaged")
    return content


@contextmanager
def serving(*paths: Path) -> Iterator[ProfileServer]:
    server = ProfileServer(Shelf(paths, pack), TOKEN, title="<b>runs</b>")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "run.bragg"
    path.write_bytes(b"first")
    return path


@contextmanager
def asked(server: ProfileServer, place: str, host: str | None = None) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", place, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    yield connection.getresponse()
    connection.close()


def get(server: ProfileServer, place: str, host: str | None = None) -> tuple[int, bytes]:
    with asked(server, place, host) as answer:
        return answer.status, answer.read()


@pytest.mark.parametrize("place", ["/", "/wrong/", f"/{TOKEN}x/profile/0", f"/{TOKEN[:-1]}/", "/%00/"])
def test_wrong_token_is_forbidden(place: str, profile: Path) -> None:
    with serving(profile) as server:
        assert get(server, place)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example:80", "127.0.0.1.evil.example:80", "127.0.0.1:80.evil.example", "evil.example", "10.0.0.1:80"]
)
def test_other_host_names_are_forbidden_with_the_right_token_too(host: str, profile: Path) -> None:
    with serving(profile) as server:
        assert get(server, f"/{TOKEN}/profile/0", host)[0] == 403
        assert get(server, f"/{TOKEN}/profile/0", "localhost:8123") == (200, b"first")


def test_server_listens_on_this_machine_only(profile: Path) -> None:
    with serving(profile) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_page_may_load_nothing_but_what_the_server_has(profile: Path) -> None:
    with serving(profile) as server, asked(server, f"/{TOKEN}/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert b"<title>&lt;b&gt;runs&lt;/b&gt;</title>" in answer.read()


@pytest.mark.parametrize("place", ["nothing", "profile/1", "profile/-1", "profile/x", "../server.py", "static/app.js"])
def test_what_is_not_there_is_not_found(place: str, profile: Path) -> None:
    with serving(profile) as server:
        assert get(server, f"/{TOKEN}/{place}")[0] == 404


def test_changed_file_has_another_version_and_is_read_again(profile: Path) -> None:
    with serving(profile) as server:
        (before,) = json.loads(get(server, f"/{TOKEN}/profiles")[1])
        assert get(server, f"/{TOKEN}/profile/0") == (200, b"first")
        profile.write_bytes(b"second state")
        (after,) = json.loads(get(server, f"/{TOKEN}/profiles")[1])
        assert (before["title"], before["version"] != after["version"]) == ("run.bragg", True)
        assert get(server, f"/{TOKEN}/profile/0") == (200, b"second state")


def test_file_that_vanishes_leaves_its_last_state_and_one_that_is_damaged_is_told(profile: Path) -> None:
    with serving(profile) as server:
        get(server, f"/{TOKEN}/profile/0")
        profile.unlink()
        assert json.loads(get(server, f"/{TOKEN}/profiles")[1])[0]["version"] == ""
        assert get(server, f"/{TOKEN}/profile/0") == (200, b"first")
        profile.write_bytes(b"bad")
        assert get(server, f"/{TOKEN}/profile/0") == (503, b"run.bragg is damaged")
        profile.write_bytes(b"good again")
        assert get(server, f"/{TOKEN}/profile/0") == (200, b"good again")


def test_stream_tells_each_change(profile: Path) -> None:
    with serving(profile) as server, asked(server, f"/{TOKEN}/changes") as answer:
        first = json.loads(answer.readline().removeprefix(b"data: "))
        assert answer.readline() == b"\n"
        profile.write_bytes(b"more")
        second = json.loads(answer.readline().removeprefix(b"data: "))
    assert first[0]["version"] != second[0]["version"]


def test_directory_has_its_newest_profiles_and_captures_that_go_on(tmp_path: Path) -> None:
    running = tmp_path / ".bragg-x" / "42.part"
    running.parent.mkdir()
    running.write_bytes(b"capture")
    with serving(tmp_path) as server:
        assert [row["title"] for row in json.loads(get(server, f"/{TOKEN}/profiles")[1])] == [".bragg-x/42.part"]
        running.unlink()
        (tmp_path / "run.bragg").write_bytes(b"finished")
        found = json.loads(get(server, f"/{TOKEN}/profiles")[1])
        assert [(row["title"], row["number"]) for row in found] == [("run.bragg", 1)]
        assert get(server, f"/{TOKEN}/profile/1") == (200, b"finished")


@contextmanager
def strangers(server: ProfileServer, count: int) -> Iterator[list[socket.socket]]:
    """Connections that send nothing."""
    opened = [socket.create_connection(("127.0.0.1", server.server_port), timeout=60) for _ in range(count)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


def test_a_flood_of_connections_leaves_room_for_those_with_the_token(profile: Path) -> None:
    n_threads = threading.active_count()
    with serving(profile) as server, asked(server, f"/{TOKEN}/changes") as stream:
        stream.readline()
        with strangers(server, 400):
            for _ in range(5):
                assert get(server, f"/{TOKEN}/profile/0") == (200, b"first")
            assert len(server.connections) <= 64
            assert threading.active_count() - n_threads <= 66
        profile.write_bytes(b"another one")
        assert stream.readline() + stream.readline()


def test_connections_beyond_the_limit_end_the_oldest_that_sent_no_token() -> None:
    pairs = [socket.socketpair() for _ in range(4)]
    connections = Connections(2)
    (first, others_first), (second, others_second), (third, _), (fourth, _) = pairs
    threads = [threading.Thread(target=ends_with, args=(connections, each)) for each in (first, second)]
    assert all(map(connections.enter, (first, second)))
    for thread in threads:
        thread.start()
    connections.trust(first)
    assert connections.enter(third)
    assert others_second.recv(1) == b""
    connections.trust(third)
    assert not connections.enter(fourth)
    others_first.close()
    for thread in threads:
        thread.join(60)
    assert connections.enter(fourth)
    for pair in pairs:
        for each in pair:
            each.close()


def ends_with(connections: Connections, connection: socket.socket) -> None:
    """What a thread of the server does: waits for a request."""
    connection.recv(1)
    connections.leave(connection)


def test_pages_of_files_that_went_are_forgotten(tmp_path: Path) -> None:
    shelf = Shelf([tmp_path], lambda path: path.read_bytes())
    for number in range(20):
        (tmp_path / f"{number}.bragg").write_bytes(b"%d" % number)
        assert shelf.packed(max(entry.number for entry in shelf.entries())) == b"%d" % number
        (tmp_path / f"{number}.bragg").unlink()
    assert len(shelf._packed) <= 8
