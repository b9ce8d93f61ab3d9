"""Findings for other tools: SARIF, JUnit's XML, workflow commands of GitHub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bragg import registry
from bragg.cli.annotations import sarif
from bragg.cli.annotations.outcome import Outcome
from bragg.debug.findings import KernelFinding, TensorFacts
from bragg.debug.report import Report
from bragg.debug.verdicts import Verdict
from bragg.model import Confidence, Finding, Place, Severity
from bragg.model.ids import NodeId
from bragg.registry import ANNOTATIONS, CHECKERS

HOSTILE = "bad\x1b[31m\n::error::%0A ]]> <b> \" ' é \udcff"
# What SARIF 2.1.0 demands of the objects that are written: properties that must be there, and their types.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "message": TEXT,
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "uri": {"type": "string", "pattern": r"^[!-~]+$"},
                        "uriBaseId": {"type": "string"},
                    },
                },
                "region": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}, "snippet": TEXT},
                },
            },
        },
        "logicalLocations": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}
RESULT = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": LEVEL,
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION},
        "relatedLocations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
NAMED = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
RULES = {"type": "array", "uniqueItems": True, "items": {"type": "object", "required": ["id"]}}
RUN = {
    "type": "object",
    "required": ["tool"],
    "properties": {
        "tool": {
            "type": "object",
            "required": ["driver"],
            "properties": {"driver": {**NAMED, "properties": {"rules": RULES}}},
        },
        "invocations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["executionSuccessful"],
                "properties": {
                    "executionSuccessful": {"type": "boolean"},
                    "toolExecutionNotifications": {
                        "type": "array",
                        "items": {"type": "object", "required": ["message"], "properties": {"level": LEVEL}},
                    },
                },
            },
        },
        "results": {"type": "array", "items": RESULT},
    },
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
}


def finding(**changes: Any) -> KernelFinding:
    given: dict[str, Any] = {
        "rule": "out-of-bounds",
        "severity": Severity.ERROR,
        "kernel": "scale",
        "file": "/project/src/my kernels.py",
        "line": 5,
        "message": "load outside of x",
        "hint": "Give the access a mask",
        "tensor": TensorFacts("x", "fp32", (30,), (1,)),
    }
    return KernelFinding(**{**given, **changes})


def outcome(*findings: KernelFinding, problem: str = "") -> Outcome:
    report = Report()
    for number, one in enumerate(findings):
        report.add(one, (number,), {3}, 1)
    report.verdicts.counts[Verdict("scale", "finding" if findings else "clean")] += 1
    report.verdicts.counts[Verdict("fine", "proven")] += 1
    return Outcome(report, Path("/project"), problem)


def sarif_of(one: Outcome) -> Any:
    (line,) = ANNOTATIONS["sarif"](one)
    return json.loads(line)["runs"][0]


def xml_of(one: Outcome) -> ElementTree.Element:
    return ElementTree.fromstring("\n".join(ANNOTATIONS["junit"](one)))


def test_sarif_has_what_code_scanning_needs() -> None:
    other = {"file": "/elsewhere/b.py", "line": 9, "code": "tl.store(x, 1)", "program": [1, 0, 0]}
    run = sarif_of(
        outcome(finding(code="tl.load(x)", other=other), finding(severity=Severity.NOTE, rule="atomic-order"))
    )
    first, second = run["results"]
    assert first["ruleId"] == "out-of-bounds"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "out-of-bounds"
    assert (first["level"], second["level"]) == ("error", "note")
    assert first["message"]["text"] == "scale: load outside of x; fix: Give the access a mask"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/my%20kernels.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 5, "snippet": {"text": "tl.load(x)"}}
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///project/"
    related = first["relatedLocations"][0]["physicalLocation"]
    assert related["artifactLocation"] == {"uri": "file:///elsewhere/b.py"}
    assert run["invocations"] == [{"executionSuccessful": True}]


@pytest.mark.parametrize("problem", ["", "stopped"])
def test_sarif_is_valid(problem: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    other = {"file": "b.py", "line": 0, "code": "", "program": "several"}
    for found in ((), (finding(code="tl.load(x)", other=other), finding(file="", line=0, kernel=""))):
        (line,) = ANNOTATIONS["sarif"](outcome(*found, problem=problem))
        jsonschema.validate(json.loads(line), SARIF)


def test_sarif_of_an_analysis_has_findings_of_checks_and_of_other_packages_and_other_lines() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    places = (Place("/project/b.py", 7), Place(node=NodeId(3)))
    found = [
        Finding("many-launches", Severity.WARNING, "much", file="/project/a.py", line=3, places=places),
        Finding("out-of-bounds", Severity.ERROR, "outside", file="/project/a.py", line=5),
        Finding("of-another-package", Severity.NOTE, "unknown", confidence=Confidence.HEURISTIC),
    ]
    codes = ["y = x.item()", "", ""]
    (line,) = sarif.analysis_lines(list(zip(found, codes, strict=True)), Path("/project"))
    jsonschema.validate(json.loads(line), SARIF)
    run = json.loads(line)["runs"][0]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    told = [rules[result["ruleIndex"]] for result in results]
    assert [(rule["id"], rule["shortDescription"]["text"]) for rule in told] == [
        ("many-launches", registry.RULES["many-launches"].summary),
        ("out-of-bounds", CHECKERS["out-of-bounds"].summary),
        ("of-another-package", "of-another-package"),
    ]
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in results[:2]]
    assert regions == [{"startLine": 3, "snippet": {"text": "y = x.item()"}}, {"startLine": 5}]
    (other,) = results[0]["relatedLocations"]
    assert other["physicalLocation"]["artifactLocation"]["uri"] == "b.py"
    assert other["physicalLocation"]["region"] == {"startLine": 7}
    assert [result["properties"]["confidence"] for result in results] == ["likely", "likely", "heuristic"]


def test_sarif_lists_every_checker_as_a_rule() -> None:
    assert [rule["id"] for rule in sarif_of(outcome())["tool"]["driver"]["rules"]] == [*CHECKERS, "kernel-fault"]


def test_a_finding_keeps_its_fingerprint_when_its_line_moves() -> None:
    results = sarif_of(outcome(finding(code="a"), finding(code="a", line=7), finding(code="b")))["results"]
    before, moved, changed = (one["partialFingerprints"]["finding/v1"] for one in results)
    assert before == moved != changed


def test_junit_counts_clean_kernels_and_findings() -> None:
    root = xml_of(outcome(finding(), finding(rule="data-race", line=8)))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "2", "0")
    cases = root.findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == [
        "fine",
        "scale: out-of-bounds at src/my kernels.py:5",
        "scale: data-race at src/my kernels.py:8",
    ]
    assert [len(case.findall("failure")) for case in cases] == [0, 1, 1]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("type") == "out-of-bounds"
    assert "tensor: x (fp32[30], strides [1])" in (failure.text or "")


def test_github_gets_a_command_for_each_finding() -> None:
    found = outcome(finding(file="/project/a,b:c.py"), finding(severity=Severity.NOTE, rule="atomic-order", hint=""))
    assert ANNOTATIONS["github"](found) == [
        "::error file=a%2Cb%3Ac.py,line=5,title=out-of-bounds::scale: load outside of x; fix: Give the access a mask",
        "::notice file=src/my kernels.py,line=5,title=atomic-order::scale: load outside of x",
    ]


def test_what_was_not_checked_is_an_error_of_each_format() -> None:
    one = outcome(problem="stopped")
    (invocation,) = sarif_of(one)["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "stopped"
    assert xml_of(one).get("errors") == "1"
    assert ANNOTATIONS["github"](one) == ["::error title=bragg check::stopped"]


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_hostile_names_neither_act_on_a_terminal_nor_leave_their_place(name: str) -> None:
    hostile = finding(kernel=HOSTILE, file=f"/project/{HOSTILE}", message=HOSTILE, hint=HOSTILE, code=HOSTILE)
    lines = ANNOTATIONS[name](outcome(hostile, problem=HOSTILE))
    assert all(line.isprintable() for line in lines)
    if name == "github":
        assert [line.split(" ")[0] for line in lines] == ["::error", "::error"]
        assert all(line.count("::") >= 2 and "%250A" in line for line in lines)
    if name == "junit":
        assert len(xml_of(outcome(hostile)).findall("testsuite/testcase")) == 3
    if name == "sarif":
        assert "\\x1b" in sarif_of(outcome(hostile))["results"][0]["message"]["text"]
