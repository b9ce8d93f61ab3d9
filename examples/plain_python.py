"""No GPU, no framework: word statistics of a made-up text, in plain Python.

    bragg run examples/plain_python.py
    bragg view plain_python.bragg

The functions show without any change of the program; the two scopes add the phases of each round.
"""

import random
from collections import Counter

import bragg

SYLLABLES = ("ba", "di", "ku", "lo", "me", "ni", "pa", "ru", "so", "te")


def write_text(words: int, rng: random.Random) -> str:
    """A text of random words of two to four syllables."""
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(words))


def count_words(text: str) -> Counter[str]:
    """How often each word occurs."""
    return Counter(text.split())


def edit_distance(one: str, other: str) -> int:
    """Number of letters to insert, delete or replace to turn one word into the other."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, candidate in enumerate(other, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != candidate))
    return row[-1]


def nearest_pair(words: list[str]) -> tuple[str, str]:
    """The two words that differ least."""
    pairs = ((one, other) for i, one in enumerate(words) for other in words[:i])
    return min(pairs, key=lambda pair: edit_distance(*pair))


def main() -> None:
    """Three rounds of writing, counting and comparing."""
    rng = random.Random(0)
    for round_number in range(3):
        with bragg.scope("count"):
            counts = count_words(write_text(100_000, rng))
        with bragg.scope("compare"):
            one, other = nearest_pair([word for word, _ in counts.most_common(120)])
        print(f"round {round_number}: {len(counts)} words, nearest: {one} {other}")


if __name__ == "__main__":
    main()
