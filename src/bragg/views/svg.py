"""Elements of an SVG document, as text."""

from __future__ import annotations

from html import escape

from bragg.views.text.style import printable


def element(name: str, *children: str, **attributes: float | str) -> str:
    """One element. Attribute names have `_` for `-`, and `_` at their end where Python reserves the word.

    Args:
        name: Of the element.
        children: Elements or escaped text inside it.
        attributes: Numbers are written to a tenth of a pixel.
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    content = "".join(children)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(content: str, x: float, y: float, **attributes: float | str) -> str:
    """A line of text."""
    return element("text", escape(printable(content)), x=x, y=y, **attributes)


def _words(name: str, content: str) -> str:
    return element(name, escape(printable(content, "\n")))


def document(width: int, height: int, style: str, title: str, description: str, *children: str) -> str:
    """A self-contained picture with a text for screen readers.

    Args:
        width: Pixels; the picture scales.
        height: Pixels.
        style: CSS.
        title: What it is.
        description: What it shows, for those who cannot see it.
        children: Its elements.
    """
    body = "\n".join([_words("title", title), _words("desc", description), *children])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img">\n<style>{style}</style>\n{body}\n</svg>\n'
    )


def _value(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
