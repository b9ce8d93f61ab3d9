"""How text is decorated: colours and drawing characters, or neither."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_BLOCKS = "▏▎▍▌▋▊▉█"
_HOT, _WARM = 0.5, 0.1
# What `Style` paints with.
_PAINT = re.compile("(\x1b\\[(?:0|1|2|31|32|33)m)")
# Between words, but not between a number and its unit.
_BREAK = re.compile(r"(?<!\d) |(?<=\d) (?!(?:%|[a-zA-Z]{1,2})(?:[\s,;:.)]|$))")
# In fewer columns numbers go without bars, and levels of a tree take two columns instead of three.
_WIDE = 100
# In fewer columns there is room for one number and a name.
_SLIM = 60
_N_PARAGRAPH = 8


@dataclass(frozen=True)
class Style:
    """What the output can show.

    Attributes:
        colour: Terminal escape sequences are wanted.
        unicode: Characters outside ASCII can be written.
        width: Columns that a line may take; None for no limit.
    """

    colour: bool = False
    unicode: bool = True
    width: int | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the terminal is too narrow for bars and extra columns."""
        return self.width is not None and self.width < _WIDE

    @property
    def is_slim(self) -> bool:
        """Whether the terminal has room for one number and a name."""
        return self.width is not None and self.width < _SLIM

    def dim(self, text: str) -> str:
        """Text that the eye may skip."""
        return self._paint(text, "2")

    def bold(self, text: str) -> str:
        """Text that the eye should find."""
        return self._paint(text, "1")

    def good(self, text: str) -> str:
        """A state that is as it should be."""
        return self._paint(text, "32")

    def warning(self, text: str) -> str:
        """A state that limits what can be done."""
        return self._paint(text, "33")

    def bad(self, text: str) -> str:
        """A state that must be changed."""
        return self._paint(text, "31")

    def heat(self, text: str, share: float) -> str:
        """Text coloured by its share of the total, 0 to 1: red from a half, yellow from a tenth."""
        return self._paint(text, "31" if share >= _HOT else "33" if share >= _WARM else "")

    def bar(self, share: float, width: int) -> str:
        """A bar of `share` of `width` columns, padded to `width`."""
        filled = min(max(share, 0.0), 1.0) * width
        if not self.unicode:
            return ("#" * round(filled)).ljust(width)
        whole, eighths = divmod(round(filled * 8), 8)
        return (_BLOCKS[-1] * whole + (_BLOCKS[eighths - 1] if eighths else "")).ljust(width)

    def branch(self, is_last: bool) -> str:
        """The line that leads to a row."""
        if self.unicode:
            return ("└ " if is_last else "├ ") if self.is_narrow else ("└─ " if is_last else "├─ ")
        return "`- " if is_last else "|- "

    def stem(self, is_last: bool) -> str:
        """The line beside the rows below a row."""
        stem = "   " if is_last else "│  " if self.unicode else "|  "
        return stem[:2] if self.unicode and self.is_narrow else stem

    @property
    def ellipsis(self) -> str:
        """What stands for something left out."""
        return "…" if self.unicode else "..."

    @property
    def arrow(self) -> str:
        """What stands between a caller and what it calls on one line."""
        return " → " if self.unicode else " -> "

    def cut(self, text: str, width: int | None) -> str:
        """The text in at most `width` columns; head and tail stay, what is cut is marked."""
        if width is None or self.width_of(text) <= width:
            return text
        text = self._escaped(text)
        room = width - len(self.ellipsis)
        if room < 2:
            return beginning(text, width)
        head = room * 2 // 3
        return beginning(text, head) + self.ellipsis + beginning(text[::-1], room - head)[::-1]

    def head(self, text: str, width: int | None) -> str:
        """The beginning of a text in at most `width` columns; that something is cut is marked."""
        if width is None or self.width_of(text) <= width:
            return text
        return beginning(self._escaped(text), max(width - len(self.ellipsis), 0)) + self.ellipsis

    def wrap(self, text: str, n_lines: int, indent: str = "", separator: str = " ") -> list[str]:
        """The text in at most so many lines, of which the last is cut; a number stays with its unit.

        Args:
            text: One line.
            n_lines: At most; a part that needs more than a line has as many for itself.
            indent: Before each line but the first.
            separator: Between parts; a line that one begins has it in front, without its first space.
        """
        lines, parts = [""], list(self._words(text, indent)) if separator == " " else text.split(separator)
        for number, part in enumerate(parts):
            longer = separator.join([lines[-1], part]) if number else part
            if number and len(lines) < n_lines and not self.fits(longer):
                lines.append(f"{indent}{separator[1:]}{part}")
            else:
                lines[-1] = longer
        if separator != " ":
            return [part for line in lines for part in self.wrap(line, n_lines, indent * 2)]
        return [self.cut(line, self.width) for line in lines]

    def _words(self, text: str, indent: str) -> Iterator[str]:
        """Parts of a text that stay in one line; one that is longer than a line is broken."""
        room = None if self.width is None else self.width - len(indent)
        for word in _BREAK.split(text):
            left = word
            while room and room > 0 and self.width_of(left) > room and (piece := beginning(left, room)):
                yield piece
                left = left[len(piece) :]
            yield left

    def paragraphs(self, texts: Iterable[str]) -> list[str]:
        """Each text in as many lines as it needs, but not more than eight."""
        return [line for text in texts for line in self.wrap(text, _N_PARAGRAPH, "  ")]

    def fits(self, text: str) -> bool:
        """Whether a line has room for a text."""
        return self.width is None or self.width_of(text) <= self.width

    def width_of(self, text: str) -> int:
        """Columns that a text takes, with escapes for what cannot be written."""
        return text_width(self._escaped(text))

    def _escaped(self, text: str) -> str:
        return text if self.unicode else text.encode("ascii", "backslashreplace").decode()

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text


PLAIN = Style()


def text_width(text: str) -> int:
    """Columns of a terminal that a text takes: two for wide letters, as of Chinese, none for combining marks."""
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def beginning(text: str, width: int) -> str:
    """The beginning of a text that fits into some columns."""
    taken = 0
    for at, letter in enumerate(text):
        taken += _letter_width(letter)
        if taken > width:
            return text[:at]
    return text


def printable(text: str, keep: str = "") -> str:
    """The text with escapes for what would move the cursor, turn the direction of writing, or cannot be encoded.

    Args:
        text: Of a file, as it comes.
        keep: Letters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def without_control(line: str, style: Style) -> str:
    """A line of output, in which only the style's own colours are escape sequences."""
    if line.isprintable():
        return line
    parts = _PAINT.split(line) if style.colour else [line]
    # Every second part is a colour.
    return "".join(part if at % 2 else printable(part, "\t") for at, part in enumerate(parts))
