"""Which values are of 64 bits by the text of a program; each line here is one that PyTorch was asked about."""

from __future__ import annotations

import ast

import pytest

from bragg.analyze.causes.text.double_values import DoubleValues
from bragg.analyze.causes.text.program_text import FileText

PROGRAM = """\
import numpy as np, torch, torch.nn as nn
a = np.zeros((8, 8))
small = a.astype(np.float32)
mask = torch.from_numpy(np.triu(np.full((8, 8), -1e9), 1))
w = torch.randn(8, 8)
layer = nn.Linear(8, 8)
x = layer(w)
scores = x @ w + mask
weights = scores.softmax(-1)
grown = grown + 1
narrow = torch.from_numpy(a)
narrow = narrow.float()
table = torch.as_tensor(np.linspace(0, 1, 8))
for step in range(8):
    turned = table * step
    y = carried * 2
    carried = torch.from_numpy(a) if step else w
def made():
    return torch.from_numpy(a)
"""

WIDE = """\
mask
mask + w
w * mask
torch.add(w, mask)
torch.cat([w, mask])
-mask
mask.exp()
mask.T
scores
weights
weights @ w.double()
mask[:, 0]
table[step][:, None]
made() * 2
turned
torch.tensor(np.array([0.5, 1]))
torch.zeros(8, dtype=torch.float64)
w.to(torch.float64)
w.double()
torch.as_tensor(np.random.randn(8))
mask.to('cpu')
mask.to(device)
torch.as_tensor(np.random.uniform(0, 1, (8, 8)))
torch.as_tensor(np.random.normal(size=8))
torch.from_numpy(np.full((8, 8), -np.inf))
torch.from_numpy(np.zeros(8, np.float64))
torch.from_numpy(np.arange(0, 1, 0.125))
torch.from_numpy(np.stack([a, a]))
torch.from_numpy(a * small)
torch.from_numpy(a[1:])
"""
OTHERS = """\
w
x
x @ w
mask.float()
mask.to(torch.float32)
mask.to(w.dtype)
mask > 0
mask.argmax(-1)
torch.from_numpy(small)
torch.from_numpy(np.arange(8))
torch.tensor([0.5, 1.0])
torch.as_tensor(b)
torch.from_numpy(a).float()
torch.as_tensor(a, dtype=torch.float32)
weights.float() @ w
narrow
table[step]
grown
y
mask.softmax(-1, dtype=torch.float32)
w * 0.5
w * np.pi
unknown(mask)
torch.from_numpy(np.zeros(8, np.float32))
torch.from_numpy(np.zeros(8, "int32"))
torch.from_numpy(np.zeros(8, small.dtype))
torch.from_numpy(np.full((8, 8), 1))
torch.tensor(np.random.rand())
torch.tensor(np.random.uniform(0.5, 1))
torch.as_tensor(np.array(0.5))
torch.tensor(np.pi)
torch.from_numpy(np.zeros(8, dtype='float32'))
a * 2
mask.numpy()
mask.shape
torch.argmax(mask)
torch.Tensor(a)
"""


def told(expression: str, program: str = PROGRAM) -> tuple[DoubleValues, ast.expr]:
    file = FileText(ast.parse(f"{program}result = {expression}\n"))
    statement = file.tree.body[-1]
    assert isinstance(statement, ast.Assign)
    return DoubleValues(file), statement.value


@pytest.mark.parametrize("expression", WIDE.splitlines())
def test_tensors_made_of_numbers_of_numpy_are_of_64_bits_and_what_is_computed_with_them(expression: str) -> None:
    values, value = told(expression)
    assert values.is_double(value)


@pytest.mark.parametrize("expression", OTHERS.splitlines())
def test_what_is_converted_or_not_known_is_not(expression: str) -> None:
    values, value = told(expression)
    assert not values.is_double(value)


@pytest.mark.parametrize(
    ("expression", "meets"),
    [
        ("x @ w + mask", True),
        ("torch.where(x > 0, w, mask)", True),
        ("mask + mask", False),
        ("mask * 2", False),
        ("mask + unknown", False),  # which may be of 64 bits, too
        ("x + mask.float()", False),
    ],
)
def test_where_64_and_32_bits_meet(expression: str, meets: bool) -> None:
    values, value = told(expression)
    assert values.meets_fewer_bits(value) == meets


def test_the_calls_are_known_that_take_the_numbers_of_numpy() -> None:
    values, value = told("x + mask")
    assert [call.lineno for call in values.makers(value)] == [4]


@pytest.mark.parametrize(
    ("line", "is_meant"),
    [
        ("torch.set_default_dtype(torch.float64)\n", True),
        ("layer.double()\n", True),
        ("layer = nn.Linear(8, 8).double()\n", True),
        ("layer.to(torch.float64)\n", True),
        ("z = w.double()\n", False),
        ("", False),
    ],
)
def test_a_program_that_asks_for_64_bits_everywhere_means_them(line: str, is_meant: bool) -> None:
    values, _ = told("x", PROGRAM + line)
    assert values.is_meant == is_meant


def test_a_long_chain_of_values_ends() -> None:
    chain = "v0 = torch.from_numpy(np.zeros(8))\n" + "".join(f"v{i + 1} = v{i} + 1\n" for i in range(2000))
    values, value = told("v2000", "import numpy as np, torch\n" + chain)
    assert not values.is_double(value)
