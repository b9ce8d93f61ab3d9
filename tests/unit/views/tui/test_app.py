from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bragg import formats
from bragg.cli.main import main
from bragg.cli.tui import source_reader
from bragg.views.terminal.tree_view import tree_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.tui.rows import TreeRows
from tests.support.profiles import profile_from_text

TEXT = """root
  train.py:3@step
    forward
      matmul 30us x1
      [bold]odd 5us
    backward
      grad 20us x3"""
SOURCE = "import torch\n\ndef step(x):\n    return x @ x\n"


def test_missing_extra_is_one_line_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    formats.export(profile_from_text(TEXT), "bragg", tmp_path / "run.bragg")
    for name in [
        name for name in sys.modules if name.partition(".")[0] == "textual" or name.startswith("bragg.views.tui")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "rich.syntax", None)
    assert main(["view", "--tui", str(tmp_path / "run.bragg")]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("error: --tui needs ")
    assert told[1] == "hint: Install it: pip install 'bragg[tui]'"


def drive(steps: Callable[[Any, Any], Awaitable[None]], read_source: Callable[[str], str | None] | None = None) -> None:
    """Run the application and drive it."""
    pytest.importorskip("textual")
    from bragg.views.tui.app import ProfileApp

    profile = profile_from_text(TEXT)
    profile.sources["train.py"] = SOURCE
    app = ProfileApp(TreeRows(tree_view(profile, ViewOptions())), "run.bragg", read_source or source_reader(profile))

    async def run() -> None:
        async with app.run_test(size=(120, 30)) as pilot:
            pause = pilot.pause

            async def settle() -> None:
                """Textual takes a process that does not get its core for an idle one."""
                for _ in range(3):  # what is done after a refresh may send messages, which others answer
                    await pause()
                    is_done = asyncio.Event()
                    app.call_after_refresh(is_done.set)
                    await asyncio.wait_for(is_done.wait(), 60)

            pilot.pause = settle
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())


def shown(app: Any) -> list[str]:
    """The names of the rows on the screen, with their level."""
    found: list[str] = []

    def walk(row: Any, level: int) -> None:
        found.append(f"{'  ' * level}{app._rows.name(row.data)}")
        if row.is_expanded:
            for child in row.children:
                walk(child, level + 1)

    walk(app._tree.root, 0)
    return found


def test_children_are_added_when_a_row_is_opened() -> None:
    async def steps(app: Any, pilot: Any) -> None:
        assert shown(app) == ["total", "  step"]
        assert len(app._row_of) == 2
        await pilot.press("down", "space")
        await pilot.pause()
        assert shown(app) == ["total", "  step", "    forward", "    backward"]

    drive(steps)


def test_hottest_path_opens_to_its_end_and_closes_again() -> None:
    async def steps(app: Any, pilot: Any) -> None:
        await pilot.press("e")
        await pilot.pause()
        assert shown(app) == ["total", "  step", "    forward", "      matmul", "      [bold]odd", "    backward"]
        assert app._rows.name(app.chosen) == "matmul"
        await pilot.press("c")
        await pilot.pause()
        assert shown(app) == ["total", "  step"]

    drive(steps)


def test_sorting_keeps_what_is_open_and_chosen() -> None:
    async def steps(app: Any, pilot: Any) -> None:
        await pilot.press("e", "s")
        await pilot.pause()
        assert shown(app)[2:4] == ["    backward", "    forward"]
        assert app._rows.name(app.chosen) == "matmul"

    drive(steps)


def test_search_opens_what_is_above_each_match() -> None:
    async def steps(app: Any, pilot: Any) -> None:
        await pilot.press("slash", "d", "enter")
        await pilot.pause()
        chosen = []
        for key in ("n", "n", "n", "N"):
            chosen.append(app._rows.name(app.chosen))
            await pilot.press(key)
            await pilot.pause()
        assert chosen == ["forward", "[bold]odd", "backward", "grad"]
        assert app._rows.name(app.chosen) == "backward"
        await pilot.press("slash", *"/((/", "enter")
        await pilot.pause()
        assert "is not an expression" in str(app.query_one("#note").render())

    drive(steps)


def test_source_pane_follows_the_cursor() -> None:
    asked: list[str] = []

    def read(file: str) -> str | None:
        asked.append(file)
        return SOURCE

    async def steps(app: Any, pilot: Any) -> None:
        await pilot.press("o")
        await pilot.pause()
        assert "no source" in str(app.query_one("#code").render())
        await pilot.press("down")
        await pilot.pause()
        assert asked == ["train.py"]
        assert app.query_one("#source").display

    drive(steps, read)


def test_source_is_that_of_the_profile_or_of_this_machine_or_none(tmp_path: Path) -> None:
    profile = profile_from_text(TEXT)
    profile.sources["train.py"] = SOURCE
    (tmp_path / "here.py").write_text("x = 1\n")
    read = source_reader(profile)
    assert read("train.py") == SOURCE
    assert read(str(tmp_path / "here.py")) == "x = 1\n"
    assert [read(name) for name in ("gone.py", "nul\0.py", str(tmp_path))] == [None, None, None]
