"""SARIF 2.1.0, which code scanning of GitHub, Azure DevOps and IDEs read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import bragg
from bragg.cli.annotations.outcome import Outcome, message_of, relative, text_of
from bragg.model import Finding, Severity
from bragg.registry import CHECKERS, RULES, Registry
from bragg.views.text.style import printable

if TYPE_CHECKING:
    from bragg.debug.findings import KernelFinding


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_FAULT = {"kernel-fault": "what ends a kernel"}


def lines(outcome: Outcome) -> list[str]:
    """The findings of a check as a document, on one line."""
    rules = _summaries(CHECKERS) | _FAULT
    results = [_of_check(finding, list(rules), outcome) for finding in outcome.report]
    return [_document("bragg check", rules, outcome.root, results, outcome.problem)]


def analysis_lines(found: Sequence[tuple[Finding, str]], root: Path) -> list[str]:
    """The findings of an analysis as a document, on one line; those that checks added to its profile among them.

    Args:
        found: Each with the text of its line; empty: not known.
        root: What files are named from.
    """
    rules = _summaries(RULES)
    others = {**_summaries(CHECKERS), **_FAULT}
    for name in dict.fromkeys(finding.rule for finding, _ in found if finding.rule not in rules):
        rules[name] = RULES[name].summary if name in RULES else others.get(name, name)
    results = [_of_analysis(finding, code, list(rules), root) for finding, code in found]
    return [_document("bragg analyze", rules, root, results)]


def _of_analysis(finding: Finding, code: str, rules: list[str], root: Path) -> dict[str, Any]:
    parts = (finding.rule, finding.kernel, relative(finding.file, root).as_posix())
    result = _result(finding, rules, printable(finding.text), _fenced(printable(finding.text)), parts)
    place = {**_location(finding.file, finding.line, code, root), **_function(finding.kernel)}
    result["locations"] = [place] if finding.file else []
    others = [each for each in finding.places if each.file]
    if others:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": "it shows here, too"}, **_location(each.file, each.line, "", root)}
            for number, each in enumerate(others, 1)
        ]
    gain, confidence = finding.gain.share if finding.gain else None, finding.confidence.name.lower()
    result["properties"] = {"gain": gain, "confidence": confidence}
    return result


def _summaries(table: Registry) -> dict[str, str]:
    """Of the rules of bragg itself: those of other packages may not be there."""
    return {name: table[name].summary for name in table if not table.is_plug_in(name)}


def _document(
    tool: str, rules: Mapping[str, str], root: Path, results: Sequence[dict[str, Any]], problem: str = ""
) -> str:
    told = [{"id": name, "shortDescription": {"text": summary}} for name, summary in rules.items()]
    run = {
        "tool": {"driver": {"name": tool, "version": bragg.__version__, "rules": told}},
        "originalUriBaseIds": {_ROOT: {"uri": f"{root.as_uri()}/"}},
        "invocations": [_invocation(problem)],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(problem: str) -> dict[str, Any]:
    if not problem:
        return {"executionSuccessful": True}
    told = {"level": "error", "message": {"text": printable(problem)}}
    return {"executionSuccessful": False, "toolExecutionNotifications": [told]}


def _result(finding: Finding, rules: list[str], text: str, markdown: str, parts: Sequence[str]) -> dict[str, Any]:
    """What both tools say of a finding.

    Args:
        finding: It.
        rules: Names of all rules.
        text: Its message.
        markdown: All that is said of it.
        parts: What stays the same when its line moves.
    """
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": text, "markdown": markdown},
        "partialFingerprints": {"finding/v1": _fingerprint(parts)},
    }


def _of_check(finding: KernelFinding, rules: list[str], outcome: Outcome) -> dict[str, Any]:
    tensor = finding.tensor.name if finding.tensor else ""
    file = outcome.relative(finding.file).as_posix()
    parts = (finding.rule, finding.kernel, file, finding.code, tensor, finding.message)
    result = _result(finding, rules, message_of(finding), _fenced(text_of(finding)), parts)
    result["locations"] = [
        {**_location(finding.file, finding.line, finding.code, outcome.root), **_function(finding.kernel)}
    ]
    if finding.other:
        text = "the other side" if "program" in finding.other else str(finding.other.get("role", "used at"))
        other = _location(finding.other["file"], finding.other["line"], finding.other["code"], outcome.root)
        result["relatedLocations"] = [{"id": 1, "message": {"text": text}, **other}]
    return result


def _location(file: str, line: int, code: str, root: Path) -> dict[str, Any]:
    path = relative(file, root)
    if path.is_absolute():
        artifact = {"uri": Path(path).as_uri()}
    else:
        artifact = {"uri": quote(os.fsencode(path.as_posix())), "uriBaseId": _ROOT}
    region: dict[str, Any] = {"startLine": max(line, 1)}
    if code:
        region["snippet"] = {"text": printable(code)}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _function(kernel: str) -> dict[str, Any]:
    return {"logicalLocations": [{"name": printable(kernel), "kind": "function"}]} if kernel else {}


def _fenced(text: str) -> str:
    """Text as a block of code, whose fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _fingerprint(parts: Sequence[str]) -> str:
    """The same for a finding whose line has moved."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
