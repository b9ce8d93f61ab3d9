"""What the words of a kernel's listing mean: kinds of instructions, and reasons of stalls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bragg.analyze.annotated_code import AnnotatedCode
from bragg.code.sass.instruction_kinds import instruction_kinds, word_of_kind
from bragg.code.source_map import Stage

_BECAME = "became: machine instructions; of an access of memory with the bits of one thread"


def code_legend(code: AnnotatedCode, stage: Stage | None) -> Iterator[str]:
    """A line for the stalls that a listing names and one for its instructions.

    Args:
        code: What is listed.
        stage: Which of its texts; None: the source.
    """
    lines = [line for section in code.sections for line in section.lines]
    reasons = [reason for line in lines if (reason := line.samples.main_reason)]
    if stalls := _told((each.name, each.meaning) for each in reasons):
        yield f"stalls wait for: {stalls}"
    if stage is Stage.SASS:
        if told := _told(word_of_kind(kind) for kind in instruction_kinds(line.text for line in lines)):
            yield f"instructions: {told}"
    elif stage is None and not code.total.count and any(line.became.get(Stage.SASS) for line in lines):
        told = _told(word_of_kind(kind) for line in lines for kind in line.kinds)
        yield f"{_BECAME}; {told}" if told else _BECAME


def _told(words: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{word}: {meaning}" for word, meaning in dict.fromkeys(words) if meaning)
