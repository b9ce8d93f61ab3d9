"""`bragg mcp`: the commands as tools of an MCP server."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bragg.errors import UsageError

_EPILOG = """\b
Examples:
  bragg mcp
  bragg mcp --directory ~/project

\b
In the configuration of a client:
  {"mcpServers": {"bragg": {"command": "bragg", "args": ["mcp"]}}}
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="Run programs and look for profiles there, not here.",
)
def mcp(directory: Path | None) -> None:
    """Serve record, analyze, view, source, diff and check to a client of MCP.

    It talks on standard input and output. Programs are recorded with the rights of its user.
    """
    try:
        from bragg.mcp_server import server
    except ModuleNotFoundError as error:
        raise UsageError("bragg mcp needs the package mcp", hint="Install it: pip install 'bragg[mcp]'") from error
    if directory is not None:
        os.chdir(directory)
    server().run()
