"""SARIF 2.1.0, which code scanning of GitHub, Azure DevOps and IDEs read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import bragg
from bragg.cli.annotations.outcome import Outcome, message_of, text_of
from bragg.debug.findings import KernelFinding
from bragg.model import Severity
from bragg.registry import CHECKERS
from bragg.views.text.style import printable

__all__ = ["lines"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def lines(outcome: Outcome) -> list[str]:
    """The document, on one line."""
    rules = [*CHECKERS, "kernel-fault"]
    run = {
        "tool": {
            "driver": {"name": "bragg check", "version": bragg.__version__, "rules": [_rule(name) for name in rules]}
        },
        "originalUriBaseIds": {_ROOT: {"uri": f"{outcome.root.as_uri()}/"}},
        "invocations": [_invocation(outcome.problem)],
        "results": [_result(finding, rules.index(finding.rule), outcome) for finding in outcome.report],
    }
    return [json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})]


def _rule(name: str) -> dict[str, Any]:
    summary = CHECKERS[name].summary if name in list(CHECKERS) else "what ends a kernel"
    return {"id": name, "shortDescription": {"text": summary}}


def _invocation(problem: str) -> dict[str, Any]:
    if not problem:
        return {"executionSuccessful": True}
    told = {"level": "error", "message": {"text": printable(problem)}}
    return {"executionSuccessful": False, "toolExecutionNotifications": [told]}


def _result(finding: KernelFinding, rule: int, outcome: Outcome) -> dict[str, Any]:
    place = {**_location(finding.file, finding.line, finding.code, outcome), **_function(finding.kernel)}
    result = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": message_of(finding), "markdown": _fenced(text_of(finding))},
        "locations": [place],
        "partialFingerprints": {"finding/v1": _fingerprint(finding, outcome)},
    }
    if finding.other:
        text = "the other side" if "program" in finding.other else str(finding.other.get("role", "used at"))
        other = _location(finding.other["file"], finding.other["line"], finding.other["code"], outcome)
        result["relatedLocations"] = [{"id": 1, "message": {"text": text}, **other}]
    return result


def _location(file: str, line: int, code: str, outcome: Outcome) -> dict[str, Any]:
    path = outcome.relative(file)
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


def _fingerprint(finding: KernelFinding, outcome: Outcome) -> str:
    """The same for a finding whose line has moved."""
    tensor = finding.tensor.name if finding.tensor else ""
    parts = (finding.rule, finding.kernel, outcome.relative(finding.file).as_posix(), finding.code, tensor)
    return hashlib.sha256("\0".join((*parts, finding.message)).encode("utf-8", "backslashreplace")).hexdigest()[:32]
