"""`bragg web`: profiles in a browser, live."""

from __future__ import annotations

import getpass
import os
import secrets
import shlex
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bragg.cli.console import say, write_json, write_lines
from bragg.cli.profile_file import READABLE
from bragg.errors import BackendUnavailable, BadFile

if TYPE_CHECKING:
    from bragg.analyze.ranks.answer import RanksAnswer
    from bragg.model import Profile
    from bragg.views.web.server import ProfileServer


_SSH_PORT = "22"
_EPILOG = """\b
Examples:
  bragg web before.bragg after.bragg --port 8123 --no-open
  bragg web .        the profiles here, and runs that are not over
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, type=READABLE)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port.  [a free one]")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def web(files: tuple[Path, ...], port: int, no_open: bool, as_json: bool) -> None:
    """Show FILES in a browser and follow their changes, until Ctrl-C.

    FILES are profiles, captures of runs that are not over (.part), files of other profilers, or directories, whose
    newest profiles are shown. The default is this directory.

    Only this machine can connect, and only with the address that is printed.
    """
    paths = files or (Path(),)
    for path in paths:
        if not path.exists():
            raise BadFile(f"cannot read {path}: No such file or directory", hint="Check the path")
    server = _server(paths, port)
    tunnel = tunnel_command(os.environ, server.server_port)
    if as_json:
        write_json("web", {"address": server.address, "port": server.server_port, "tunnel": tunnel})
    else:
        write_lines([server.address])
        say(_advice(tunnel))
    if not no_open and tunnel is None and _has_browser(os.environ):
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say([""])
    finally:
        server.is_closing = True
        server.server_close()


def tunnel_command(environment: Mapping[str, str], port: int) -> str | None:
    """The command that reaches a port of this machine from the user's own; None if this is the user's own."""
    connection = environment.get("SSH_CONNECTION", "").split()
    if not connection:
        return None
    # Address and port of the client, then of the server.
    host, ssh_port = connection[2:4] if len(connection) == 4 else ("this-machine", _SSH_PORT)
    other_port = [] if ssh_port == _SSH_PORT else ["-p", ssh_port]
    return shlex.join(["ssh", "-N", "-L", f"{port}:127.0.0.1:{port}", *other_port, f"{getpass.getuser()}@{host}"])


def _advice(tunnel: str | None) -> list[str]:
    stop = "Ctrl-C stops."
    if tunnel is None:
        return [f"Open this address in a browser on this machine. {stop}"]
    return [f"Run this on your own machine, then open the address there: {tunnel}", stop]


def _server(paths: Sequence[Path], port: int) -> ProfileServer:
    from bragg.formats.captured.writer import is_being_written
    from bragg.formats.job.foreign import foreign_ranks
    from bragg.views.web.server import ProfileServer
    from bragg.views.web.shelf import Shelf

    foreign = {path: [rank.path for rank in foreign_ranks(path)] for path in paths if path.is_dir()}
    shown = [file for path in paths for file in foreign.get(path) or [path]]
    pack = partial(_packed, directories=frozenset(path for path, files in foreign.items() if files))
    title = paths[0].resolve().name if len(paths) == 1 else f"{len(paths)} profiles"
    try:
        shelf = Shelf(shown, pack, is_being_written)
        return ProfileServer(shelf, secrets.token_urlsafe(24), port=port, title=f"{title} - bragg")
    except OSError as error:
        raise BackendUnavailable(
            f"port {port} cannot be used: {error.strerror}", hint="Choose another one, or none: --port 0"
        ) from error


def _packed(path: Path, directories: frozenset[Path] = frozenset()) -> bytes:
    """A profile as the page reads it, with the ranks of its job compared.

    Args:
        path: The profile.
        directories: Those with ranks of other profilers that were named: elsewhere such files may be of anything.
    """
    from bragg import formats
    from bragg.formats.job.directory import is_recorded_job
    from bragg.views.web.report_payload import report_payload

    profile = formats.load(path)
    name = _capture_name(profile, path) if path.suffix == ".part" else path.name
    is_job = path.parent in directories or is_recorded_job(path.parent)
    ranks = _compared(path.parent, _state(path.parent)) if is_job else None
    return report_payload(profile, name, ranks=ranks)


def _capture_name(profile: Profile, path: Path) -> str:
    """`train.py (running, pid 4711)`; without an end and not seen to run `(incomplete, pid 4711)`."""
    from bragg.views.text.run_facts import RunFacts

    run = profile.run
    state = "running, " if run.is_running else "incomplete, " if run.is_cut_short else ""
    return f"{RunFacts(profile.meta).command or path.name} ({state}pid {run.pid})"


@lru_cache(maxsize=1)
def _compared(directory: Path, _state: tuple[tuple[str, int], ...]) -> RanksAnswer | None:
    """The ranks of a job compared, once for all of its profiles as long as none of them changes."""
    from bragg.cli.rank_files import compared_ranks

    return compared_ranks(directory)


def _state(directory: Path) -> tuple[tuple[str, int], ...]:
    """Names of the files in a directory, and when each was written."""
    return tuple(sorted((path.name, path.stat().st_mtime_ns) for path in directory.glob("*.*") if path.is_file()))


def _has_browser(environment: Mapping[str, str]) -> bool:
    return sys.platform == "darwin" or any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
