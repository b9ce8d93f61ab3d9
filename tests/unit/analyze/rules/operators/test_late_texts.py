"""Work that is done too late, too often, or for nothing, by the text of the program."""

from __future__ import annotations

import pytest

from tests.support.told_by_text import found, ran

NET = """class Net:
  def __init__(self):
    self.proj, self.rec = nn.Linear(9, 9), nn.Linear(9, 9)
    self.rnn, self.cell = nn.LSTM(9, 9), nn.GRUCell(9, 9)
    self.conv, self.vision, self.table = nn.Conv1d(1, 9, 9), nn.Sequential(a, b), nn.Embedding(9, 9)
  def f(self, x, z, src, dst, ids, n):
    {}
    {}
    {}
    return h
"""


def program(text: str) -> str:
    """The lines of a method, from 7 on."""
    lines = (text + "\n    pass" * 3).split("\n    ")[:3]
    return NET.format(*lines)


@pytest.mark.parametrize(
    ("text", "line", "n_found"),
    [
        ("h = self.proj(x)\n    h = h.mean(1)", 7, 1),  # what is read behind is the mean
        ("y = self.proj(x)\n    h = y.mean(1)", 7, 1),
        ("h = self.proj(x).mean(dim=-2)", 7, 1),
        ("y = x @ z\n    h = torch.mean(y, 1)", 7, 1),
        ("h = self.proj(x).mean(-1)", 7, 0),  # of its features
        ("h = self.proj(x).relu().mean(1)", 7, 0),
        ("y = self.proj(x)\n    h = y.mean(1) + y[:, 0]", 7, 0),
    ],
)
def test_a_mean_over_positions_comes_before_a_linear_layer(text: str, line: int, n_found: int) -> None:
    assert [each.line for each in found("late-part", ran(program(text), "7@f: linear"))] == [line] * n_found


@pytest.mark.parametrize(("operators", "n_found"), [("linear", 1), ("linear, softmax, linear", 0)])
def test_a_layer_that_mixes_positions_is_needed_at_those_that_a_mask_drops(operators: str, n_found: int) -> None:
    profile = ran(program("k = z > 0\n    y = self.vision(x)\n    h = y[k]"), f"8@f: {operators}")
    assert [each.line for each in found("late-part", profile)] == [8] * n_found


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("y = self.conv(x)\n    h = y[:, :, ::n]", 1),
        ("y = self.conv(x)\n    y = y[:, :, ::n]\n    h = y.relu()", 1),
        ("y = self.conv(x)\n    if n: y = y[:, :, ::n]\n    h = y.relu()", 0),
        ("y = self.conv(x)\n    h = y[:, :, ::1]", 0),
        ("y = self.conv(x)\n    h = y[:, :, ::n] + y.mean()", 0),
    ],
)
def test_positions_that_are_left_out_need_no_convolution(text: str, n_found: int) -> None:
    assert [each.line for each in found("late-part", ran(program(text), "7@f: conv1d"))] == [7] * n_found


@pytest.mark.parametrize(("dim", "lookup_us", "n_found"), [("-1", 4, 1), ("0", 4, 0), ("-1", 90, 0)])
def test_a_table_is_normalized_where_few_rows_are_looked_up(dim: str, lookup_us: int, n_found: int) -> None:
    text = program(f"t = F.normalize(self.table.weight, dim={dim})\n    h = t[ids]")
    profile = ran(text, "7@f: linalg_vector_norm, clamp_min, div", f"8@f: index={lookup_us}")
    assert [each.line for each in found("late-part", profile)] == [7] * n_found


@pytest.mark.parametrize(
    ("text", "line", "n_found"),
    [
        ("for t in range(n):\n      u = self.proj(x[t])\n      h = self.rec(h) + u", 8, 1),
        ("for u in x:\n      u = self.proj(u)\n      h = h @ w + u", 8, 1),
        ("for t in range(n):\n      u = self.proj(h[t])\n      h = self.rec(h) + u", 8, 0),  # of its state
        ("for u in x:\n      u = self.proj(u)\n      h = h + u", 8, 0),  # a sum over batches
        ("for u in x:\n      h = self.rec(h) + self.proj(u)\n      loss.backward()", 8, 0),
        ("for t in range(n):\n      h, s = self.rnn(x[:, t : t + 1], s)", 8, 1),
        ("for t in range(n):\n      h = self.cell(x[:, t], h)", 8, 1),
        (
            "for t in range(n):\n      h = self.cell(x[:, t], h)\n      h = h * z",
            8,
            0,
        ),  # a state that is changed between
        ("for t in range(n):\n      h, s = self.rnn(x, s)\n      x = self.proj(h)", 8, 0),  # its own output
        ("for t in range(n):\n      h, s = self.rnn(x[:, t], s)\n      x[:, t + 1] = h", 8, 0),
        ("for u in x:\n      h, s = self.rnn(u)", 8, 0),  # sequences, each from its beginning
    ],
)
def test_a_recurrence_that_does_step_by_step_what_needs_no_earlier_step(text: str, line: int, n_found: int) -> None:
    text = program(text.replace("\n      ", "\n    \t"))
    assert [each.line for each in found("known-inputs", ran(text, f"{line}@f: linear"))] == [line] * n_found


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("y = x.repeat_interleave(n, dim=0)\n    h = self.vision(y)", 8, "a network"),
        ("h = self.vision(x.repeat(n, 1, 1, 1))", 7, "a network"),
        ("y = x[:, None].expand(-1, n, -1).flatten(0, 1)\n    h = self.vision(y)", 8, "a network"),
        ("y = x.unsqueeze(1).repeat(1, n, 1).reshape(-1, 9)\n    h = self.vision(y)", 8, "a network"),
        ("h = self.vision(x.repeat(1, 3, 1, 1))", 7, ""),  # channels
        ("h = self.vision(x.repeat_interleave(n, dim=1))", 7, ""),
        ("y = x.repeat(n, 1)\n    y = y + torch.randn_like(y)\n    h = self.vision(y)", 9, ""),
        ("y = x.repeat(n, 1)\n    h = self.vision(y, z)", 8, ""),
        (
            "y = z.unsqueeze(1).expand(-1, n, -1)\n    h = self.proj(torch.cat([x, y], -1))",
            8,
            "a layer multiplies r",
        ),
        ("h = self.proj(torch.cat([x, z], -1))", 7, ""),
        ("h = self.proj(torch.cat([x[src], x[dst]], -1))", 7, "a layer multiplies pairs"),
        ("h = self.proj(torch.cat([x[src], z[dst]], -1))", 7, ""),
        ("h = self.proj(torch.cat([x[:5], x[5:]], -1))", 7, ""),
    ],
)
def test_rows_that_were_repeated_before_a_network_or_a_layer(text: str, line: int, what: str) -> None:
    told = found("late-repeat", ran(program(text), f"{line}@f: linear"))
    assert [each.line for each in told] == [line] * bool(what)
    assert all(each.message.startswith(what) for each in told)


def test_a_network_with_chance_computes_other_rows_each_time() -> None:
    text = program("h = self.vision(x.repeat(n, 1))")
    assert found("late-repeat", ran(text, "7@f: linear, native_dropout")) == []


GROUPS = "def f(x, index, n):\n  m = {}\n  return m @ x\n"


@pytest.mark.parametrize(
    ("made", "n_found"),
    [
        ("(index[None, :] == torch.arange(n)[:, None]).float()", 1),
        ("(index[None, :] == index[:, None]).float()", 0),
        ("(index[None, :] < torch.arange(n)[:, None]).float()", 0),
    ],
)
def test_sums_over_groups_by_a_matrix_that_compares_their_numbers(made: str, n_found: int) -> None:
    profile = ran(GROUPS.format(made), "2@f: eq, to", "3@f: matmul")
    told = found("structured-product", profile)
    assert [bool(each.line) for each in told] == [True] * n_found


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("h = torch.eye(n) - 2 * torch.outer(i, i)\n  return x @ h", "products with a unit matrix"),
        ("h = torch.eye(n) - x\n  return x @ h", ""),
        ("k = torch.ones(1, 1, n, n) / n**2\n  return F.conv2d(x, k)", "convolutions with a filter of equal values"),
        ("return F.conv2d(x, torch.ones(8, 3, n, n))", ""),
        (
            "w = torch.zeros(n, n, 3, 3)\n  w[range(n), range(n)] = i\n  return F.conv2d(x, w)",
            "convolutions with a filter that takes each channel to itself alone",
        ),
        ("w = torch.zeros(n, n, 3, 3)\n  w[range(n), i] = 1\n  return F.conv2d(x, w)", ""),
    ],
)
def test_reflections_and_filters_of_equal_values(text: str, what: str) -> None:
    line, operator = 1 + len(text.splitlines()), "conv2d" if "conv2d" in text else "matmul"
    told = found("structured-product", ran(f"def f(self, x, i, n):\n  {text}\n", f"{line}@f: {operator}"))
    assert [each.message.startswith(what) for each in told] == [True] * bool(what)


def test_parameters_hide_variables_of_the_file() -> None:
    """A loop takes parts of its argument: of no product, though the file has a variable of that name."""
    text = "x = torch.rand(9)\ndef f(self, x, n):\n  for t in range(n):\n    u = x[t]\n    h = self.proj(u) + h\n"
    profile = ran(text, "4@f: select", "5@f: linear")
    assert found("part-of-product", profile) == []


@pytest.mark.parametrize(("text", "n_found"), [("self.proj(x).mean().backward()", 0), ("src.append(self.proj(x))", 1)])
def test_of_a_product_that_nothing_keeps_no_part_is_taken(text: str, n_found: int) -> None:
    taken = "src[0]" if n_found else "x[0]"
    profile = ran(program(f"x = x + 1\n    {text}\n    h = {taken} + dst.mean(z)[0]"), "8@f: linear", "9@f: select")
    assert [each.line for each in found("part-of-product", profile)] == [8] * n_found


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("h = (x @ z).diagonal()", 1),
        ("h = torch.diag(x @ z)", 1),
        ("h = torch.trace(self.proj(x))", 1),
        ("h = x @ z.diagonal().sqrt()", 0),
        ("h = x @ torch.diagonal(z)", 0),
    ],
)
def test_a_diagonal_in_the_line_of_a_product_is_of_its_result(text: str, n_found: int) -> None:
    profile = ran(program(f"x = x + 1\n    z = z + 1\n    {text}"), "9@f: diagonal=1, matmul")
    assert [each.line for each in found("part-of-product", profile)] == [9] * n_found


def test_layers_of_edges_are_said_to_be_late_once() -> None:
    text = program("y = torch.cat([x[src], x[dst]], -1)\n    h = self.proj(y)\n    h = self.rec(h)")
    profile = ran(text, "7@f: index, cat", "8@f: linear", "9@f: linear")
    assert [(each.rule, each.line) for rule in ("late-product", "late-repeat") for each in found(rule, profile)] == [
        ("late-repeat", 8)
    ]


@pytest.mark.parametrize(("other", "n_found"), [("z[dst]", 0), ("z", 1)])
def test_a_layer_of_sums_of_two_gathered_rows_is_not_late(other: str, n_found: int) -> None:
    text = program(f"y = x[src] + {other}\n    h = self.rec(torch.relu(y))")
    told = found("late-product", ran(text, "7@f: index, add", "8@f: linear"))
    assert [each.line for each in told] == [8] * n_found


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("h = self.proj(x[src])", 1),
        ("h = (x[src] @ z[0]).gather(1, ids)", 1),
        ("h = (x @ z[0]).gather(1, ids)", 0),
        ("h = torch.gather(x @ z.T, 1, ids)", 0),
        ("h = self.proj(x)[src]", 0),
    ],
)
def test_rows_that_are_gathered_of_a_product_were_not_gathered_before(text: str, n_found: int) -> None:
    told = found("late-product", ran(program(text), "7@f: linear, gather=9"))
    assert [each.line for each in told] == [7] * n_found


@pytest.mark.parametrize(
    ("scores", "between", "mixed", "n_found"),
    [
        ("w = q @ k.transpose(-2, -1)", "total = w.sum(-1)", "(w @ v) / total", 1),
        ("w = torch.bmm(q, k.mT) * q.shape[-1] ** -0.5", "total = w.sum(-1)", "torch.bmm(w, v)", 1),
        ("kt = k.t()\n  w = q @ kt / math.sqrt(dim)", "", "w.matmul(v)", 1),
        ("w = q @ k.transpose(-2, -1) * decay", "", "w @ v", 0),  # a matrix for each pair
        ("w = q @ k.transpose(-2, -1)", "w = w.softmax(-1)", "w @ v", 0),
        ("w = q @ k.transpose(-2, -1)", "self.kept = w", "w @ v", 0),
        ("w = q @ k", "total = w.sum(-1)", "w @ v", 0),  # two layers
        ("w = k.transpose(-2, -1) @ v", "total = q.sum(-1)", "q @ w", 0),
    ],
)
def test_scores_that_only_weigh_a_sum_are_a_product_of_three(
    scores: str, between: str, mixed: str, n_found: int
) -> None:
    text = f"def f(q, k, v):\n  {scores}\n  {between}\n  b = 1\n  return {mixed}\n"
    first = text[: text.index("  w = ")].count("\n") + 1
    calls = (f"{first}@f: matmul=60", f"{first + 1}@f: sum", f"{first + 3}@f: matmul=40")
    findings = found("product-order", ran(text, *calls))
    assert [each.line for each in findings] == [first] * n_found
    for each in findings:
        assert each.evidence[1].value == pytest.approx((150 if "total" in between else 100) / 170)


@pytest.mark.parametrize(
    ("first", "second", "n_found"),
    [
        ("y = self.proj(h)", "z = self.rec(h[:, 0])", 0),
        ("y = self.proj(h)", "z = y.relu()\n    h = z[:, 0]", 1),
        ("h = self.proj(h)[:, 0]", "z = self.rec(x)", 1),
    ],
)
def test_a_product_is_not_said_to_be_one_of_which_another_value_has_the_part(
    first: str, second: str, n_found: int
) -> None:
    text = program("h = self.vision(x)").replace("    pass", f"    {first}\n    {second}", 1)
    at = 8 + (first + "\n" + second)[: (first + "\n" + second).index("[:, 0]")].count("\n")
    profile = ran(text, "8@f: linear", f"{at}@f: select", "9@f: addmm=1")
    assert [each.line for each in found("part-of-product", profile)] == [8] * n_found


@pytest.mark.parametrize(
    ("first", "second", "n_found"),
    [
        ("w = b @ a", "y = x @ w.T", 1),
        ("w = base + b @ a", "y = x @ w", 1),
        ("y = (x @ a) @ b", "z = 1", 1),
        ("y = torch.einsum('ij,jk', x, torch.einsum(s, a, b))", "z = 1", 1),
        ("w = self.b[t] @ self.a[t]", "y = x @ w.T", 1),
        ("code = x @ a", "y = x.t() @ code - code.sum()", 0),  # it has to be made
        ("gram = a.t() @ a", "y = x @ gram", 0),
        ("y = x @ a", "z = x @ b", 0),
    ],
)
def test_products_are_of_three_matrices_if_one_is_of_the_other(first: str, second: str, n_found: int) -> None:
    text = f"def f(x, a, b):\n  {first}\n  {second}\n  return y, z\n"
    second_at = 3 if "@" in second else 2
    profile = ran(text, "2@f: matmul", f"{second_at}@f: matmul", "4@f: stack=1")
    assert [each.line for each in found("product-order", profile)] == [2] * n_found


CROP = """class Images:
  def prepare(self, x, top, left):
    x = x.float() / 255
    x = (x - self.mean) / self.std
    return {}
"""


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("x[:, :, top : top + 64, left : left + 64]", 1),
        ("x[..., :64, :64]", 1),
        ("x[:, :, 1:-1, 1:-1]", 0),  # a margin
        ("x[:, :, top : top + 64]", 0),
        ("x[:, :, top : top + 64, left : left + 64] + x.mean()", 0),
    ],
)
def test_operators_on_images_of_which_a_part_is_cut_out(text: str, n_found: int) -> None:
    told = found("late-part", ran(CROP.format(text), "3@prepare: to, div", "4@prepare: sub, div=60"))
    assert [(each.line, [place.line for place in each.places]) for each in told] == [(4, [3])] * n_found
    shares = [each.value for finding in told for each in finding.evidence if each.name == "share of the GPU time"]
    assert shares == [pytest.approx(210 / 230)] * n_found


@pytest.mark.parametrize(
    ("operator", "part", "n_found"),
    [
        ("upsample_bilinear2d", "n : n + 64, n : n + 64", 1),
        ("interpolate/upsample_bilinear2d", "n : n + 64, n : n + 64", 0),
        ("upsample_bilinear2d", ":n, :n", 0),  # what an image was padded with
    ],
)
def test_an_interpolation_of_which_a_part_is_cut_out(operator: str, part: str, n_found: int) -> None:
    text = f"def zoom(x, n):\n  big = F.interpolate(x, scale_factor=2)\n  return big[..., {part}]\n"
    assert [each.line for each in found("late-part", ran(text, f"2@zoom: {operator}"))] == [2] * n_found


@pytest.mark.parametrize(
    ("text", "lookup_us", "n_found"),
    [
        ("(self.frames.float() / 255)[rows]", 4, 1),
        ("(self.frames.float() / 255)[rows]", 20, 0),  # many rows
        ("self.frames[rows].float() / 255", 4, 0),
        ("(self.frames.float() / 255)[mask > 0]", 4, 0),
    ],
)
def test_a_table_is_converted_where_few_rows_are_looked_up(text: str, lookup_us: int, n_found: int) -> None:
    profile = ran(
        f"class Replay:\n  def sample(self, rows):\n    return {text}\n", f"3@sample: to, div, index={lookup_us}"
    )
    told = found("late-part", profile)
    assert [(each.line, each.message[:21]) for each in told] == [(3, "elementwise operators")] * n_found


@pytest.mark.parametrize(
    ("text", "gathered_us", "n_found"),
    [
        ("s = x @ table.T\n  return s.gather(1, index)", 4, 1),
        ("s = x @ table.T\n  return s[rows, index]", 4, 1),
        ("s = x @ table.T\n  return s.gather(1, index)", 20, 0),  # a good part of them
        ("s = x @ table.T\n  return s.gather(1, index) - s.logsumexp(1)", 4, 0),
        ("s = x @ table.T\n  return s[:, index]", 4, 0),
    ],
)
def test_products_with_a_table_of_which_few_are_gathered(text: str, gathered_us: int, n_found: int) -> None:
    profile = ran(f"def score(x, index, rows):\n  {text}\n", "2@score: matmul", f"3@score: gather={gathered_us}")
    told = found("late-part", profile)
    assert [(each.line, each.message[-15:]) for each in told if "gathers" in each.message] == [
        (2, "of the GPU time")
    ] * n_found


def test_values_that_a_network_gives_for_actions_are_all_needed() -> None:
    """What the last layer of a network computes has few columns."""
    text = "def act(s, a):\n  q = net(s)\n  return q.gather(1, a)\ndef net(s):\n  return s @ w\n"
    assert found("late-part", ran(text, "2@act > 5@net: matmul", "3@act: gather=4")) == []


JOINED = """class Decode:
  def __init__(self):
    self.fuse, self.wide = nn.Conv2d(9, 9, 1), nn.Conv2d(9, 9, 3)
  def forward(self, feats, size):
    {}
    {}
"""


@pytest.mark.parametrize(
    ("first", "second", "n_found"),
    [
        ("ups = [F.interpolate(f, size) for f in feats]", "return self.fuse(torch.cat(ups, 1))", 1),
        ("a = F.interpolate(feats[1], size)", "return self.fuse(torch.cat([feats[0], a], 1))", 1),
        ("ups = [F.interpolate(f, size) for f in feats]", "return self.wide(torch.cat(ups, 1))", 0),
        ("ups = [self.wide(f) for f in feats]", "return self.fuse(torch.cat(ups, 1))", 0),
    ],
)
def test_a_convolution_of_single_pixels_of_joined_images_comes_before_these_are_upsampled(
    first: str, second: str, n_found: int
) -> None:
    told = found(
        "late-layer", ran(JOINED.format(first, second), "5@forward: upsample_bilinear2d", "6@forward: conv2d=60")
    )
    assert [each.line for each in told] == [6] * n_found
    assert all(each.gain and each.gain.share < 0.15 for each in told)  # as measured: joined, most of the work stays


def test_variables_of_the_file_are_not_said_to_be_cut() -> None:
    text = "mean = mean.float()\ndef prepare(x):\n  return (x - mean)[:, :, :64, :64]\n"
    assert found("late-part", ran(text, "1@<module>: to")) == []


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("h = z.pow(2).sum() - z.diagonal().sum()", 0),
        ("h = z.float().diagonal().sum() / z.shape[0]", 1),
        ("h = (z + 1)[:, 0]", 1),
    ],
)
def test_of_a_product_that_is_used_whole_no_part_is_taken(text: str, n_found: int) -> None:
    profile = ran(program(f"z = x @ x.T\n    {text}"), "7@f: matmul", "8@f: diagonal=1, sum=2")
    assert [each.line for each in found("part-of-product", profile)] == [7] * n_found


@pytest.mark.parametrize(("operator", "n_found"), [("linear", 1), ("copy_", 0)])
def test_an_average_of_parameters_is_no_evaluation(operator: str, n_found: int) -> None:
    text = (
        "@torch.no_grad()\ndef absorb(net):\n  return average(net)\n"
        "def main():\n  for x in data:\n    loss = net(x)\n    loss.backward()\n    absorb(net)\n"
    )
    profile = ran(text, "6@main: mm", f"8@main > 3@absorb: {operator}")
    assert [each.line for each in found("evaluation-in-steps", profile)] == [8] * n_found


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("y = self.rec(self.proj(x))\n    h = y * valid.unsqueeze(-1)", 1),
        ("y = self.proj(x)\n    y = self.rec(y)\n    h = y * (z > 0)[..., None]", 1),
        ("y = self.proj(x)\n    m = z.ne(0).float()\n    h = y * m", 1),
        ("y = self.proj(x)\n    return y * valid", 1),
        ("y = self.proj(x)\n    h = y * src", 0),
        ("y = self.proj(x)\n    valid = torch.sigmoid(z)\n    h = y * valid", 0),  # a gate
        ("y = self.proj(x)\n    h = y * valid\n    h = h + y", 0),
    ],
)
def test_layers_of_which_a_mask_leaves_a_part_are_found_without_a_gain(text: str, n_found: int) -> None:
    told = found("late-part", ran(program(text), "7@f: linear"))
    assert [(each.line, each.gain) for each in told] == [(7, None)] * n_found
    assert all("sets some to zero" in each.message for each in told)


def test_a_block_is_not_taken_for_the_last_one() -> None:
    text = (
        "class Block:\n  def forward(self, x):\n    x = x + self.proj(mix(x))\n    return x + self.down(x)\n"
        "net = nn.Sequential(*[Block() for _ in range(4)])\nproj, down = nn.Linear(9, 9), nn.Linear(9, 9)\n"
        "def f(x):\n  return net(x)\ndef g(x):\n  h = f(x)\n  return h[:, -1]\n"
    )
    text = text.replace("proj, down", "net.proj, net.down")
    assert found("late-part", ran(text, "10@g > 8@f > 3@forward: linear")) == []


@pytest.mark.parametrize(
    ("made", "batch", "line"),
    [
        ("self.docs = pad_sequence(docs)", "self.docs[at : at + n]", 3),
        ("self.docs = sorted(docs, key=len)", "pad_sequence(self.docs[at : at + n])", 0),
        ("self.docs = pad_sequence(docs)", "self.docs[at : at + n][:, : self.lengths[at : at + n].max()]", 0),
        ("self.docs = pad_sequence(docs)", "self.docs[0:2]", 0),  # all that there is
        ("self.docs = TensorDataset(pad_sequence(docs))", "next(self.docs)", 3),
    ],
)
def test_sequences_that_are_all_padded_to_the_longest_are_found(made: str, batch: str, line: int) -> None:
    text = (
        f"class Index:\n  def __init__(self, docs):\n    {made}\n  def vectors(self, at, n):\n    return net({batch})\n"
    )
    told = found("padded-batch", ran(text, "5@vectors: linear"))
    assert [(each.line, each.gain) for each in told] == [(line, None)] * bool(line)


@pytest.mark.parametrize(
    ("mask", "n_found"),
    [
        ("(at[:, None] - at[None, :]).abs() > self.window", 1),
        ("at[:, None] < at[None, :]", 0),  # causal
        ("at.abs() > self.window", 0),
        ("(torch.arange(n)[:, None] - torch.arange(3 * n)).abs() > n", 0),  # within a block
    ],
)
def test_attention_of_which_a_mask_leaves_a_window_is_found(mask: str, n_found: int) -> None:
    text = (
        f"class Net:\n  def mask(self, n):\n    at = torch.arange(n)\n    return {mask}\n  def f(self, q, k):\n"
        "    scores = q @ k.mT\n    scores = scores.masked_fill(self.mask(len(q)), -inf)\n"
        "    return scores.softmax(-1)\n"
    )
    told = found("masked-attention", ran(text, "6@f: matmul=90", "7@f: masked_fill", "8@f: softmax"))
    assert [(each.line, each.gain) for each in told] == [(6, None)] * n_found
    assert all("near to each other" in each.message for each in told)
