"""What programs without a GPU write as text, by frames of libraries and by the text of their lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from bragg.model import Finding
from tests.support.profiles import profile_from_text

LIBRARY = "/usr/lib/python3.12/"
JSON = f"{LIBRARY}json/encoder.py:258@JSONEncoder.iterencode"
READS = f"{LIBRARY}json/decoder.py:353@JSONDecoder.raw_decode"
LOGS = f"{LIBRARY}logging/__init__.py:1114@StreamHandler.emit"
HANDLER = "def handle(x):\n    y = model(x)\n    return {}\n"


def found(inside: str, statement: str = "respond(y)", own_ms: int = 0, extra: str = "") -> list[Finding]:
    """Of a program whose model takes 200 ms, and line 3 of the handler so long itself, with what is inside of it."""
    below = f"\n    {inside} host=600ms" if inside else ""
    profile = profile_from_text(
        f"root\n  serve.py:2@handle host=200ms\n  serve.py:3@handle host={own_ms}ms{below}\n{extra}"
    )
    told = analysis(Evidence(replace(profile, sources={"serve.py": HANDLER.format(statement)})), ["serialization"])
    return told.findings


@pytest.mark.parametrize(
    ("inside", "message", "share"),
    [
        (JSON, "values become JSON, 75 % of the host's time", 0.9 * 0.75),
        (f"{LIBRARY}json/__init__.py:231@dumps", "values become JSON, 75 % of the host's time", 0.9 * 0.75),
        (f"{LIBRARY}csv.py:154@DictWriter.writerow", "values become CSV, 75 % of the host's time", 0.9 * 0.75),
        (f"{LIBRARY}pickle.py:476@_Pickler.dump", "objects are pickled, 75 % of the host's time", 0.7 * 0.75),
        (LOGS, "messages are logged, 75 % of the host's time", 0.9 * 0.75),
    ],
)
def test_code_of_libraries_that_writes_is_found_at_the_line_that_calls_it(
    inside: str, message: str, share: float
) -> None:
    (finding,) = found(inside)
    assert (finding.file, finding.line, finding.message) == ("serve.py", 3, message)
    assert finding.gain is not None
    assert finding.gain.share == pytest.approx(share)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("pickle.dumps(y)", "objects are pickled, 75 % of the host's time"),
        ("len(pickle.dumps(y))", "objects are pickled, 75 % of the host's time"),
        ("writer.writerow(y)", "values become CSV, 75 % of the host's time"),
        ("print(f'{y.item():.3f}', file=out)", "lines are printed, 75 % of the host's time"),
        (
            "print(handle(y))",
            "lines are printed, 75 % of the host's time",
        ),  # a function of the program has its own frame
    ],
)
def test_native_code_that_writes_is_found_by_the_text_of_its_line(statement: str, message: str) -> None:
    (finding,) = found("", statement, own_ms=600)
    assert (finding.line, finding.message) == (3, message)


@pytest.mark.parametrize(
    ("inside", "statement", "own_ms"),
    [
        (READS, "json.loads(y)", 0),
        ("", "print(scipy.linalg.expm(y))", 600),  # what is printed may take longer
        ("", "print(a @ b)", 600),
        ("", "print([v ** 2 for v in y])", 600),
        ("", "print(y)", 15),  # too little
        (f"{LIBRARY}json/encoder.py:258@JSONDecoder.decode", "y", 0),
    ],
)
def test_what_reads_or_computes_is_fine(inside: str, statement: str, own_ms: int) -> None:
    assert found(inside, statement, own_ms) == []


def test_imports_of_these_libraries_write_nothing() -> None:
    imports = f"  serve.py:1@<module>\n    <frozen importlib._bootstrap>:1360@_find_and_load\n      {JSON} host=900ms"
    assert found("", own_ms=600, extra=imports) == []


def test_a_program_with_a_gpu_is_not_judged() -> None:
    profile = profile_from_text(f"root\n  serve.py:3@handle\n    {JSON} host=600ms\n  gemm 5ms")
    told = analysis(Evidence(profile), ["serialization"])
    assert (told.findings, list(told.skipped), told.fine) == ([], ["serialization"], [])
