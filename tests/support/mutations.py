"""Files that are damaged, the same ones in every run, and what their readers make of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bragg import formats
from bragg.errors import BadFile, BraggError, NothingRecorded
from tests.support.captures import chunk, small_capture

N_FILES = 10_000

Mutation = Callable[[random.Random, bytes], bytes]


def flip_bits(choose: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(choose.choice((1, 1, 2, 8))):
        changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
    return bytes(changed)


def truncate(choose: random.Random, content: bytes) -> bytes:
    return content[: choose.randrange(len(content))]


def splice(choose: random.Random, content: bytes) -> bytes:
    """A piece is repeated elsewhere, over what was there or between."""
    begin, end = sorted(choose.randrange(len(content)) for _ in range(2))
    place = choose.randrange(len(content))
    skip = choose.choice((0, end - begin))
    return content[:place] + content[begin:end] + content[place + skip :]


def fill(choose: random.Random, content: bytes) -> bytes:
    """A piece becomes one value: a hole in a file, or garbage."""
    begin, end = sorted(choose.randrange(len(content)) for _ in range(2))
    return content[:begin] + bytes([choose.choice((0, 255, choose.randrange(256)))]) * (end - begin) + content[end:]


def reseal_chunk(choose: random.Random, content: bytes) -> bytes:
    """One chunk of a capture with other content, for which its checksums are right."""
    builder = small_capture()
    index = choose.randrange(len(builder.chunks))
    old = builder.chunks[index]
    chunk_type, rows = int.from_bytes(old[4:6], "little"), int.from_bytes(old[8:12], "little")
    payload = old[24 : 24 + int.from_bytes(old[12:16], "little")]
    if choose.random() < 0.2:
        rows = choose.choice((0, rows + 1, 2**32 - 1))
    if payload:
        payload = choose.choice((flip_bits, truncate, splice, fill))(choose, payload)
    builder.chunks[index] = chunk(chunk_type, rows, payload)
    return builder.content()


def outcomes(whole: bytes, mutations: tuple[Mutation, ...], path: Path, n_files: int = N_FILES) -> Counter[str]:
    choose = random.Random(20)
    found: Counter[str] = Counter()
    for _ in range(n_files):
        path.unlink(missing_ok=True)  # ext4 flushes a file that is written anew: 0.3 ms
        path.write_bytes(choose.choice(mutations)(choose, whole))
        try:
            profile = formats.load(path)
            profile.check()
            found["read"] += 1
        except (BadFile, NothingRecorded) as error:
            assert_is_one_line_with_a_hint(error)
            found[type(error).__name__] += 1
    return found


def assert_is_one_line_with_a_hint(error: BraggError) -> None:
    assert error.message
    assert "\n" not in error.message
    assert error.hint
