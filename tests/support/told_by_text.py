"""Programs of one file that are judged by their text."""

from __future__ import annotations

from dataclasses import replace

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding, Profile
from tests.support.stepped import stepped


def ran(text: str, *calls: str) -> Profile:
    """A program of one file: calls as `7@f: embedding, sum`, in `19@main` unless callers are said (`3@g > 7@f: sum`).

    Each operator has a kernel of 50 us, `sum=9` one of 9 us, `norm/svd` one in an operator within it; one of 20 us
    stands for the rest of the program.
    """
    lines, at = [], 0
    for call in (*calls, "99@main: relu=20"):
        where, operators = call.split(": ")
        path = " > ".join(f"train.py:{each}" for each in where.split(" > "))
        for operator in operators.split(", "):
            name, _, took_us = operator.partition("=")
            took = int(took_us or 50)
            own = " > ".join([path, *(f"aten::{each}#operator" for each in name.split("/"))])
            lines.append(f"host {at}-{at + 5} {own} ->{at + 1}")
            lines.append(f"gpu {at + 6}-{at + 6 + took} {own} > kernel_{name.replace('/', '_')}#kernel <-{at + 1}")
            at += took + 10
    return replace(stepped("\n".join(lines), at + 20), sources={"train.py": text})


def found(rule: str, profile: Profile) -> list[Finding]:
    return analysis(Evidence(profile), [rule]).findings
