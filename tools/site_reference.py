"""The pages and tables of the reference that are made from the code when the site is built.

python tools/site_reference.py    prints them
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import click

import bragg
from bragg.analyze.causes.thresholds import Threshold
from bragg.analyze.engine import Rule
from bragg.cli.main import command_line
from bragg.cli.verbs import VERBS
from bragg.model import (
    CounterTable,
    DurationTable,
    FrameTable,
    InputTable,
    KernelTable,
    SliceTable,
    TrackTable,
)
from bragg.model.table import Table
from bragg.record import RecordConfig
from bragg.registry import CHECKERS, RULES
from bragg.views.text.metric_meanings import MEANINGS
from bragg.views.text.units import quantity_text

__all__ = ["BLOCKS", "PAGES", "expanded"]

_TABLES: dict[str, type[Table]] = {
    "frames": FrameTable,
    "tracks": TrackTable,
    "slices": SliceTable,
    "counters": CounterTable,
    "kernels": KernelTable,
    "durations": DurationTable,
    "inputs": InputTable,
}
_WIDTH = 100
_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Example|Source):(.*)$")
_MARK = re.compile(r"^<!-- made from the code: ([a-z-]+) -->$", re.MULTILINE)


def expanded(page: str) -> str:
    """A page of Markdown with its marks replaced by what the code says.

    Raises:
        KeyError: A mark names no block.
    """
    return _MARK.sub(lambda mark: BLOCKS[mark[1]](), page)


def commands() -> str:
    """A section for each command: what it does, its arguments, options and examples."""
    sections = [_command(name) for name in VERBS]
    head = "# Commands\n\n`bragg COMMAND --help` prints the same. `python -m bragg` is `bragg`.\n"
    table = _table(("command", "what it does"), ((f"[`bragg {n}`](#bragg-{n})", v.summary) for n, v in VERBS.items()))
    return "\n".join([head, table, *sections])


def python_api() -> str:
    """A section for each public name of the package."""
    names = [name for name in bragg.__all__ if name != "__version__"]
    head = "# Python\n\nAll public names of `bragg`. `import bragg` loads no framework and has no other effect.\n"
    options = "## Options of a recording\n\nKeywords of `bragg.start` and `bragg.profile`.\n"
    return "\n".join([head, *(_public(name) for name in names), options, _options()])


def metrics() -> str:
    """The table of metrics."""
    rows = (
        (f"`{name}`", f"`{m.unit}`" if m.unit else "any", m.kind.value, m.text, f"`{m.shown_by}`" if m.shown_by else "")
        for name, m in MEANINGS.items()
    )
    return _table(("metric", "unit", "kind", "meaning", "in `bragg view` with"), rows)


def checkers() -> str:
    """The table of checkers."""
    rows = [
        (f"[`{c.name}`](#{c.name})", "on" if c.is_default else "off", c.summary.split("\n")[0])
        for c in CHECKERS.values()
    ]
    rows.append(("[`kernel-fault`](#kernel-fault)", "always", "errors that end a kernel"))
    return _table(("checker", "", "finds"), rows)


def columns() -> str:
    """A table of columns for each table of a profile."""
    return "\n".join(f"**{name}**: {_first_line(table)}\n\n{_columns(table)}" for name, table in _TABLES.items())


PAGES: dict[str, Callable[[], str]] = {"reference/commands.md": commands, "reference/python.md": python_api}
"""Whole pages, by their path in the site."""


def rules() -> str:
    """What each rule of the analysis looks for."""
    return "\n".join(f"## {name}\n\n{_rule(RULES[name])}\n" for name in RULES)


def _rule(rule: Rule) -> str:
    needs = ", ".join(f"{need.what}{f' (`bragg run {need.option}`)' if need.option else ''}" for need in rule.needs)
    rows = [f"| {each.meaning} | {_limit(each)} | {each.source} |" for each in rule.thresholds]
    table = ["", "| what is compared | with | source |", "|---|---|---|", *rows] if rows else []
    texts = [
        f"Looks for {rule.summary}.",
        f"Needs {needs}." if needs else "",
        f"Change: {rule.change}." if rule.change else "",
    ]
    return "\n".join([" ".join(filter(None, texts)), *table])


def _limit(threshold: Threshold) -> str:
    return f"{threshold.value:g}" if threshold.unit == "1" else quantity_text(threshold.value, threshold.unit)


BLOCKS: dict[str, Callable[[], str]] = {"metrics": metrics, "checkers": checkers, "rules": rules, "columns": columns}
"""Parts of pages that people wrote, by the name in their mark."""


def _command(name: str) -> str:
    context = click.Context(command_line)
    command = command_line.get_command(context, name)
    assert command is not None
    own = click.Context(command, info_name=f"bragg {name}")
    usage = " ".join([own.info_name or "", *command.collect_usage_pieces(own)])
    given = (item for item in command.params if isinstance(item, click.Option))
    records = [record for item in given if (record := item.get_help_record(own))]
    options = _table(("option", "meaning"), ((f"`{option}`", _cell(text)) for option, text in records))
    examples = (command.epilog or "").replace("\b\n", "").replace("Examples:\n", "")
    text = inspect.cleandoc(command.help or "")
    return (
        f"## bragg {name}\n\n```\n{usage}\n```\n\n{text}\n\n{options}\n```\n{textwrap.dedent(examples).strip()}\n```\n"
    )


def _public(name: str) -> str:
    value = getattr(bragg, name)
    if inspect.ismodule(value):
        errors = (getattr(value, item) for item in value.__all__)
        rows = ((f"`{e.__name__}`", _first_line(e), str(getattr(e, "exit_code", ""))) for e in errors)
        return f"## bragg.{name}\n\n{_first_line(value)}\n\n{_table(('error', 'meaning', 'exit code'), rows)}"
    parts = [f"## bragg.{name}\n", f"```python\n{_signature(name, value)}\n```\n", _prose(inspect.getdoc(value) or "")]
    if inspect.isclass(value):
        for method, function in inspect.getmembers(value, callable):
            if not method.startswith("_") and inspect.isfunction(inspect.unwrap(function)):
                parts.append(f"### {name}.{method}\n\n```python\n{_signature(method, function)}\n```\n")
                parts.append(_prose(inspect.getdoc(function) or ""))
    return "\n".join(parts)


def _signature(name: str, value: object) -> str:
    """The call with its annotations, without the quotes of postponed ones and the names of private defaults."""
    return re.sub(r" = <[^>]*>", " = ...", re.sub(r"(: |-> )'([^']*)'", r"\1\2", _call(name, value)))


def _call(name: str, value: object) -> str:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:
        return _declared(name)  # the native core has no signatures
    call = f"{name}{signature}"
    if len(call) <= _WIDTH:
        return call
    listed: list[str] = []
    for item in signature.parameters.values():
        if item.name == "self":
            continue
        if item.kind is item.KEYWORD_ONLY and "*" not in listed:
            listed.append("*")
        listed.append(str(item))
    result = str(signature).rpartition(" -> ")[2]
    return f"{name}(\n" + "".join(f"    {row},\n" for row in listed) + f") -> {result}"


def _declared(name: str) -> str:
    """The signature that the core's stub declares; `scope` is its class `Scope`."""
    stub = ast.parse((Path(bragg.__file__).parent / "_core.pyi").read_text())
    for item in stub.body:
        if isinstance(item, ast.ClassDef) and item.name.lower() == name:
            item = next(f for f in item.body if isinstance(f, ast.FunctionDef) and f.name == "__init__")
            del item.args.args[0]
            return f"{name}({ast.unparse(item.args)})"
        if isinstance(item, ast.FunctionDef) and item.name == name:
            return f"{name}({ast.unparse(item.args)}) -> {ast.unparse(item.returns or ast.Constant(None))}"
    raise KeyError(name)


def _prose(documentation: str) -> str:
    """A docstring of Google style as Markdown: sections become lists."""
    lines: list[str] = []
    in_section = False
    documentation = documentation.rpartition("\n--\n\n")[2]  # of a native type, its signature stands first
    for line in documentation.splitlines():
        found = _SECTION.match(line)
        if found:
            in_section = True
            lines += ["", f"**{found[1]}:**{found[2]}", ""]
        elif in_section and re.match(r"    \S", line):
            name, colon, text = line.strip().partition(": ")
            lines.append(f"- `{name}`: {text}" if colon and " " not in name else f"- {line.strip()}")
        elif in_section and line.startswith("     "):
            lines.append(f"  {line.strip()}")
        else:
            in_section = in_section and not line
            lines.append(line)
    return "\n".join(lines) + "\n"


def _columns(table: type[Table]) -> str:
    meanings = dict(_attributes(table))
    rows = (
        (f"`{name}`", "text" if dtype is None else dtype.name, meanings.get(name, ""))
        for name, dtype in table.columns().items()
    )
    return _table(("column", "type", "meaning"), rows)


def _options() -> str:
    """The options of a recording with their defaults."""
    meanings = dict(_attributes(RecordConfig))
    rows = ((f"`{item.name}`", f"`{item.default!r}`", meanings.get(item.name, "")) for item in fields(RecordConfig))
    return _table(("option", "default", "meaning"), rows)


def _attributes(table: type) -> Iterator[tuple[str, str]]:
    """Name and meaning of each attribute of a docstring."""
    text = (inspect.getdoc(table) or "").partition("Attributes:\n")[2]
    for item in re.finditer(r"^    (\w+): (.*(?:\n     +.*)*)", text, re.MULTILINE):
        yield item[1], " ".join(item[2].split())


def _first_line(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def _cell(text: str) -> str:
    """Text of a help page in a table of Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print("\n\n".join(make() for make in (*PAGES.values(), *BLOCKS.values())))
