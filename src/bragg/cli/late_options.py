"""Options of bragg that stand behind the program, which gets them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

__all__ = ["late_hint"]


def late_hint(command: click.Command, target: Sequence[str], *, is_refused: bool = False) -> str:
    """Where options behind the program belong; empty: there are none, or the program may mean them.

    Args:
        command: Of bragg.
        target: The program and what it gets.
        is_refused: The program did not know one of them; else those count that its text lacks.
    """
    own = {name for option in command.params for name in option.opts if name.startswith("--") or name == "-o"}
    late = [word for word in target[1:] if word.partition("=")[0] in own]
    if late and not is_refused:
        text = _text_of(Path(target[0]))
        late = [] if text is None else [word for word in late if word.partition("=")[0] not in text]
    if not late:
        return ""
    options, program = " ".join(late), " ".join(target[: 2 if target[0].startswith("-") else 1])
    behind = f"bragg {command.name} {options} … {program}"
    return f"hint: The program got {options}: options of bragg stand before it: {behind}"


def _text_of(script: Path) -> str | None:
    """The text of a Python program; None: it is another one, or cannot be read."""
    try:
        return script.read_text(encoding="utf-8") if script.suffix == ".py" else None
    except (OSError, ValueError):
        return None
