"""Source places of the lines of LLVM IR, from the `!dbg` of its instructions."""

from __future__ import annotations

import re

from bragg.code.source_place import MAX_CALLS, CallChain, SourcePlace

_NODE = re.compile(r"^(!\d+) = (?:distinct )?!(\w+)\((.*)\)\s*$")
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|([^,\s]+))')
_PLACE = re.compile(r"!dbg (!\d+)")

_Node = dict[str, str]


def places_of_llvm(text: str) -> list[CallChain]:
    """Where each line comes from, one chain a line; lines that are not instructions have none.

    %7 = shl i32 %6, 10, !dbg !8
    !8 = !DILocation(line: 6, column: 15, scope: !15, inlinedAt: !16)
    !15 = distinct !DILexicalBlockFile(scope: !4, file: !1)
    !1 = !DIFile(filename: "train.py", directory: "/home/me")
    """
    lines = text.splitlines()
    nodes: dict[str, _Node] = {}
    for node in filter(None, map(_NODE.match, lines)):
        nodes[node[1]] = {name: quoted or plain for name, quoted, plain in _FIELD.findall(node[3])}
    places = _Places(nodes)
    return [places.chain(match[1]) if (match := _place_of(line)) else () for line in lines]


def _place_of(line: str) -> re.Match[str] | None:
    """The place of an instruction; the line that opens a function names that of all of it."""
    return None if not line.startswith(" ") else _PLACE.search(line)


class _Places:
    """Follows places to their files and calls; damaged texts may lead round in a circle."""

    def __init__(self, nodes: dict[str, _Node]) -> None:
        self._nodes = nodes
        self._chains: dict[str, CallChain] = {}

    def chain(self, key: str) -> CallChain:
        if key not in self._chains:
            chain: list[SourcePlace] = []
            at = key
            while at in self._nodes and len(chain) < MAX_CALLS:
                node = self._nodes[at]
                chain.append(SourcePlace(self._file(node), _number(node, "line"), _number(node, "column")))
                at = node.get("inlinedAt", "")
            self._chains[key] = tuple(chain) if all(place.file and place.line for place in chain) else ()
        return self._chains[key]

    def _file(self, node: _Node) -> str:
        """The file of the innermost scope that names one."""
        for _ in range(MAX_CALLS):
            if "file" in node:
                file = self._nodes.get(node["file"], {})
                name, folder = file.get("filename", ""), file.get("directory", "")
                return f"{folder}/{name}" if folder and not name.startswith("/") else name
            node = self._nodes.get(node.get("scope", ""), {})
        return ""


def _number(node: _Node, name: str) -> int:
    text = node.get(name, "")
    return int(text) if text.isdecimal() else 0
