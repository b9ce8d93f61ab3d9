from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from bragg.analyze.causes.text.invariants import Turns, computed
from bragg.analyze.causes.text.program_text import FileText, call_name


def file_of(text: str) -> FileText:
    return FileText(ast.parse(dedent(text)))


def loop_of(file: FileText, line: int) -> Turns:
    return Turns(file, file.loops_of(statement(file, line))[-1])


def statement(file: FileText, line: int) -> ast.stmt:
    found = file.statement(line)
    assert found is not None
    return found


NET = """\
class Net:
    def __init__(self, size):
        self.mask = torch.triu(torch.full((size, size), -1e9), 1)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        mask = self.mask.to(x.dtype)
        return attend(
            x, mask=mask,
        )

net = Net(make(7))
"""


def test_a_statement_is_found_at_each_of_its_lines() -> None:
    file = file_of(NET)
    assert [type(statement(file, line)).__name__ for line in (7, 8, 9, 10)] == ["Assign", "Return", "Return", "Return"]
    assert isinstance(statement(file, 2), ast.FunctionDef)


def test_values_are_followed_through_variables_attributes_and_arguments() -> None:
    file = file_of(NET)
    mask = next(each.value for each in ast.walk(file.tree) if isinstance(each, ast.keyword) and each.arg == "mask")
    assert {call_name(each) for each in file.origins(mask) if isinstance(each, ast.Call)} == {
        "to",
        "triu",
        "full",
        "make",
    }
    assert [call_name(each) for each in file.makers(mask)] == ["triu"]
    assert [ast.unparse(each) for each in file.attributes["scale"]] == ["torch.ones(3)"]


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("y = f(x)", False),
        ("y = f(x, i)", True),  # the loop's variable
        ("y = torch.rand(3)", True),  # chance
        ("y = noisy(x)", True),  # of a function that the file has
        ("z = f(i); y = g(z)", True),
        ("y = f(w); w = w + y", True),  # what the turn before left
        ("h = x; h = f(h); y = h", False),  # what this turn has set
        ("y = f(b); b[0] = i", True),
        ("y = f(b); b.add_(1)", True),
        ("y = f(b); fill(b)", True),  # a call whose result nobody takes may change it
        ("y = f(b); kept.append(b[i]); print(b)", False),  # but not what is kept in a list, or shown
        ("y = f(b); kept.noisy(b)", True),
        ("y = [f(x, k) for k in range(3)][0]", False),
    ],
)
def test_what_a_loop_computes_from_the_same_values_is_told(body: str, changes: bool) -> None:
    lines = body.split("; ")
    text = ["def noisy(x):", "    return x + torch.randn(3)", "for i in range(9):", *(f"    {line}" for line in lines)]
    file = file_of("\n".join(text))
    at = next(number for number, line in enumerate(lines) if line.startswith("y = "))
    turns, found = loop_of(file, 4 + at), statement(file, 4 + at)
    value = computed(found)
    assert value is not None
    assert turns.changes(value, turns.changing) is changes


CALLS = """\
class Cell:
    def forward(self, x, h):
        w = exp(self.a)
        return w @ h + x

def run(cells, xs, h):
    for t in range(9):
        h = cell(xs[t], h)
    for cell in cells:
        h = cell(xs, h)
"""


@pytest.mark.parametrize(("line", "changing"), [(8, {"x", "h"}), (10, {"self", "h", "w"})])
def test_arguments_and_the_object_that_is_called_change_with_what_the_call_names(line: int, changing: set[str]) -> None:
    file = file_of(CALLS)
    turns, (forward,) = loop_of(file, line), file.functions["forward"]
    assert turns.changing_in(forward, statement(file, line), turns.changing) == changing


def test_networks_change_where_a_loop_trains_unless_they_are_frozen() -> None:
    file = file_of(
        """\
        teacher, student = nn.Linear(3, 3), nn.Linear(3, 3)
        teacher.requires_grad_(False)
        for epoch in range(9):
            a = teacher(x)
            b = student(x)
            b.backward()
        """
    )
    turns = loop_of(file, 4)
    values = [computed(statement(file, line)) for line in (4, 5)]
    assert [value is not None and turns.changes(value, turns.changing) for value in values] == [False, True]


CONFIGURED = """\
@dataclass
class Config:
    padding: str = "max_length"

def width(cfg, docs):
    if cfg.padding == "longest":
        return max(map(len, docs))
    return 512

size = width(Config({}), docs)
"""


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("", {"width"}),
        ("padding='longest'", {"width", "max", "map"}),
        ("padding=args.padding", {"width", "max", "map"}),
        ("*args", {"width", "max", "map"}),
        ("**args", {"width", "max", "map"}),
        ("padding='max_length'", {"width"}),
    ],
)
def test_what_a_setting_excludes_is_no_origin(given: str, called: set[str]) -> None:
    file = file_of(CONFIGURED.format(given))
    value = computed(statement(file, 10))
    assert value is not None
    calls = {call_name(each) for each in file.origins(value) if isinstance(each, ast.Call)}
    assert calls - {"Config"} == called


NESTED = """\
class Guard:
    def __init__(self, params):
        self.params = list(params)
    def __call__(self):
        return read_next(self.params)

def main(rows):
    optimizer, fixed = Adam(model.parameters()), make(9)
    guard = Guard([1])
    def step():
        a = net(batch)
        b = net(fixed)
        c = optimizer.norm()
        d = guard()
        return a, b, c, d
    for batch in rows:
        loss = step()
        loss.backward()
"""


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (11, True),  # what the loop around sets
        (12, False),
        (13, True),  # parameters that the loop trains
        (14, True),  # what the object does when it is called
    ],
)
def test_functions_within_functions_read_what_these_change(line: int, changes: bool) -> None:
    file = file_of(NESTED)
    turns, (step,) = loop_of(file, 17), file.functions["step"]
    value = computed(statement(file, line))
    assert value is not None
    assert turns.changes(value, turns.changing_in(step, statement(file, 17), turns.changing)) is changes


MEMORY = """\
class Decoder:
    def start(self, memory):
        self.memory = memory
    def forward(self, x):
        return self.keys(self.memory) @ x

def main(clips, model, x):
    model.start(clips[0])
    for step in range(99):
        pos = step % 48
        {}
        x = model(x)
"""


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("pos += 1", False),  # before the loop alone
        ("if pos == 0: model.start(clips[step])", False),  # in one turn of 48
        ("if step == pos: model.start(clips[step])", True),
        ("model.start(clips[step])", True),
        ("turn(model.start)", True),
        ("model.memory = x", True),
    ],
)
def test_attributes_change_where_turns_set_them_often(text: str, changes: bool) -> None:
    file = file_of(MEMORY.format(text))
    turns, value = loop_of(file, 12), computed(statement(file, 5))
    (forward,) = file.functions["forward"]
    assert isinstance(value, ast.BinOp)
    assert turns.changes(value.left, turns.changing_in(forward, statement(file, 12), turns.changing)) is changes


def test_what_is_called_beside_a_network_does_not_change_its_arguments() -> None:
    file = file_of(
        """\
        class Net:
            def forward(self, x):
                return self.head(self.body(x))

        net = Net()
        for _ in range(9):
            found.append(net(x).softmax(-1))
        """
    )
    turns, (forward,) = loop_of(file, 7), file.functions["forward"]
    assert turns.changing_in(forward, statement(file, 7), turns.changing) == set()


@pytest.mark.parametrize(
    ("loop", "goes_on"),
    [
        ("for i in range(9):\n    y = f(x)", False),
        ("for i in range(9):\n    y = f(w)\n    w = g(y)", True),
        ("for i in range(9):\n    y = f(x)\n    total = total + y", False),  # nothing else uses it
        ("for i in range(9):\n    for a in [x, y]:\n        b = f(a)", True),  # epochs over a list
    ],
)
def test_a_loop_that_goes_on_is_told_from_one_that_does_the_same_to_data(loop: str, goes_on: bool) -> None:
    assert loop_of(file_of(loop), 2).goes_on is goes_on
