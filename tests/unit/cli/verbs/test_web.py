from __future__ import annotations

import getpass
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from benchmarks.straggler_jobs import JobPlan, write_job_files
from bragg import formats
from bragg.cli import rank_files
from bragg.cli.main import main
from bragg.cli.verbs.web import _packed, tunnel_command
from bragg.views.web.server import ProfileServer
from tests.support.captures import small_capture
from tests.support.iprof_trace import iprof_trace
from tests.support.profiles import profile_from_text


def test_tunnel_goes_to_the_address_that_the_client_connected_to() -> None:
    user = getpass.getuser()
    assert tunnel_command({}, 8123) is None
    environment = {"SSH_CONNECTION": "10.0.0.7 50000 10.0.0.9 22"}
    assert tunnel_command(environment, 8123) == f"ssh -N -L 8123:127.0.0.1:8123 {user}@10.0.0.9"
    environment = {"SSH_CONNECTION": "10.0.0.7 50000 10.0.0.9 2222"}
    assert tunnel_command(environment, 8123) == f"ssh -N -L 8123:127.0.0.1:8123 -p 2222 {user}@10.0.0.9"


def test_missing_file_is_told_before_anything_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "gone.bragg"]) == 6
    assert "cannot read gone.bragg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "options", "n_opened"),
    [
        ({"DISPLAY": ":0"}, [], 1),
        ({"DISPLAY": ":0"}, ["--no-open"], 0),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, [], 0),
        ({}, [], 0),
    ],
)
def test_browser_is_opened_where_the_reader_sits(
    environment: dict[str, str], options: list[str], n_opened: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_server: ProfileServer) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(ProfileServer, "serve_forever", interrupted)
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["web", str(tmp_path), *options]) == 0
    assert len(opened) == n_opened


def test_taken_port_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["web", str(tmp_path), "--port", str(port)]) == 4
    assert f"port {port} cannot be used" in capsys.readouterr().err


def test_address_is_printed_works_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    formats.export(profile_from_text("root\n  matmul 12us"), "bragg", tmp_path / "run.bragg")
    # Shells start background jobs with Ctrl-C ignored, and the tests may run in one.
    interrupt = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{interrupt}; import sys; from bragg.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "web", "run.bragg", "--json"]
    environment = {**os.environ, "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", told["address"])
        assert told["tunnel"].startswith(f"ssh -N -L {told['port']}:127.0.0.1:{told['port']} ")
        with urllib.request.urlopen(f"{told['address']}profile/0") as answer:
            assert answer.read().startswith(b"\x1f\x8b")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_capture_is_named_by_whether_its_run_continues(tmp_path: Path) -> None:
    def title() -> str:
        header = gzip.decompress(_packed(path))
        return str(json.loads(header[4 : 4 + int.from_bytes(header[:4], "little")])["title"])

    builder = small_capture()
    del builder.chunks[-1]
    path = builder.write(tmp_path / f"{os.getpid()}.part")
    with path.open("ab"):
        assert title() == f"{path.name} (running, pid 42)"
    assert title() == f"{path.name} (incomplete, pid 42)"


def test_ranks_are_compared_once_for_all_profiles_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_job_files(JobPlan(n_ranks=2, n_steps=3, n_layers=1), tmp_path)
    compare = rank_files.compared_ranks
    compared: list[Path] = []
    monkeypatch.setattr(rank_files, "compared_ranks", lambda path: (compared.append(path), compare(path))[1])
    for file in files:
        _packed(file)
    assert compared == [tmp_path]
    os.utime(files[0], ns=(1, 1))
    _packed(files[0])
    assert compared == [tmp_path] * 2


def test_files_of_other_profilers_are_ranks_only_in_a_directory_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / f"iprof.{rank}.pftrace" for rank in range(2)]
    for file in files:
        file.write_bytes(iprof_trace())
    compared: list[Path] = []
    monkeypatch.setattr(rank_files, "compared_ranks", compared.append)
    _packed(files[0])
    assert compared == []
    _packed(files[0], frozenset([tmp_path]))
    assert compared == [tmp_path]
