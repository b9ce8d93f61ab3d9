"""Where a program writes the sizes that it launches a kernel with."""

from __future__ import annotations

import ast

import pytest

from bragg.analyze.causes.text.launch_constants import line_of_constants
from bragg.analyze.causes.text.program_text import FileText

TILES = {"BM": 32, "BN": 32, "BK": 64, "num_warps": 4}


def line(text: str, compiled: dict[str, int] | None = None) -> int | None:
    """Where the text writes the numbers of its launch, the statement with `kernel[`."""
    file = FileText(ast.parse(text))
    launch = next(number for number, each in enumerate(text.splitlines(), 1) if "kernel[" in each)
    return line_of_constants(file, launch, TILES if compiled is None else compiled)


FROM_A_FUNCTION = """\
WIDTHS = (64, (32, 64, 32, 32))
def options(m, n):
    if SMALL:
        return dict(BM=16, BN=16, BK=64, num_warps=4)
    return dict(BM=32, BN=32, BK=64, num_warps=4)
def product(x, w):
    m, n = x.shape[0], w.shape[1]
    found = options(m, n)
    kernel[(triton.cdiv(m, found["BM"]),)](x, w, m, n, **found)
product(torch.zeros(*WIDTHS), WIDTHS)
"""


def test_sizes_of_tensors_that_a_function_is_given_are_none_of_the_launch() -> None:
    assert line(FROM_A_FUNCTION) == 5


def test_of_two_sets_of_sizes_the_one_that_was_compiled_is_named() -> None:
    assert line(FROM_A_FUNCTION, {"BM": 16, "BN": 16, "BK": 64, "num_warps": 4}) == 4


def test_sizes_that_no_line_writes_as_they_were_compiled_are_not_known() -> None:
    assert line(FROM_A_FUNCTION, {"BM": 128, "BN": 128}) is None


@pytest.mark.parametrize(
    "given",
    [
        "def made(self, block=(32, 32, 64)):\n    self.block = block\ndef run(self, x):\n    bm, bn, bk = self.block\n"
        "    kernel[(x.shape[0],)](x, BM=bm, BN=bn, BK=bk)",
        "TILES = {'BM': 32, 'BN': 32, 'BK': 64}\nkernel[(1,)](x, BM=TILES['BM'], BN=TILES['BN'], BK=TILES['BK'])",
        "TILES = {'BM': 32, 'BN': 32, 'BK': 64}\nkernel[(1,)](x, **{**TILES, 'num_warps': warps})",
        "\nTILES = {'half': dict(BM=32, BN=32, BK=64), 'float': dict(BM=16, BN=16, BK=16)}\n"
        "kernel[(1,)](x, **TILES[name])",
    ],
)
def test_sizes_are_followed_to_where_they_are_written(given: str) -> None:
    assert line(given) == given.splitlines().index(next(each for each in given.splitlines() if "32" in each)) + 1


def test_a_launch_that_writes_a_size_itself_is_the_place() -> None:
    assert line("TILE = 32\nkernel[(1,)](x, BM=TILE, BN=TILE, num_warps=4)") is None


def test_lines_that_write_as_many_sizes_each_are_not_chosen_from() -> None:
    assert line("WIDTH = 64\nTILE = 32\nkernel[(1,)](x, BK=WIDTH, BM=TILE)") is None
    assert line("WIDTH = 64\nTILE = 32\nkernel[(1,)](x, BK=WIDTH, BM=TILE, BN=TILE)") == 2


TUNED = """\
@triton.autotune(
    configs=[
        triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=4),
        triton.Config({"BM": 32, "BN": 32, "BK": 64}, num_warps=8),
        triton.Config(
            dict(BM=32, BN=32, BK=64),
            num_warps=4),
        triton.Config({"BM": 32, "BN": width(), "BK": 64}, num_warps=4),
    ],
    key=["n"],
)
@triton.jit
def product(x, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr): ...
def run(x):
    kernel[(x.shape[0],)](x, x.shape[0])
"""


def test_of_the_configurations_of_an_autotuner_the_one_that_was_compiled_is_named() -> None:
    assert line(TUNED) == 5
    assert line(TUNED, {"BM": 32, "BN": 32, "BK": 32, "num_warps": 4}) == 3
    assert line(TUNED, {"BM": 64, "BN": 32, "BK": 32, "num_warps": 4}) is None


def test_of_two_configurations_alike_none_is_named() -> None:
    assert line(TUNED + "twin = triton.Config({'BM': 32, 'BN': 32, 'BK': 64})\n") is None
