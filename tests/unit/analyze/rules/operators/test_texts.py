"""What the text of a program tells of its operators: each defect with its line, and the repaired text without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.model import Profile
from tests.support.stepped import stepped
from tests.support.told_by_text import found, ran


@pytest.mark.parametrize(
    ("text", "repaired", "operators", "what"),
    [
        (
            "u, s, v = torch.linalg.svd(x)\n    return s",
            "u, s, v = svd(x)\n    return u, s",
            "linalg_svd",
            "singular v",
        ),
        (
            "e, _ = torch.linalg.eigh(x)\n    return e",
            "e, v = eigh(x)\n    return v",
            "linalg_eigh",
            "eige",
        ),
        (
            "q, r = torch.linalg.qr(x)\n    return r",
            "q, r = torch.linalg.qr(x)\n    return q @ r",
            "linalg_qr",
            "an orth",
        ),
        ("return torch.linalg.pinv(x) @ y", "return torch.linalg.pinv(x)", "linalg_pinv", "pseudoinverses"),
        ("return self.table(x).sum(1)", "return self.table(x).sum(-1)", "embedding, sum", "rows of"),
        (
            "return F.embedding(x, w).mean(dim=1)",
            "return F.embedding_bag(x, w)",
            "embedding, mean",
            "rows of an embedding",
        ),
        ("return x.unfold(-1, n, 1).mean(-1)", "return x.unfold(-1, n, n).mean(-1)", "mean", "overlap"),
        ("return F.unfold(x, n).amin(1)", "return F.unfold(x, n).amin(2)", "im2col, amin", "all windows of images"),
        (
            "return torch.bmm(x[:, :, None], y[:, None]).sum(0)",
            "return torch.bmm(x, y).sum(0)",
            "bmm, sum",
            "outer",
        ),
        (
            'return torch.einsum("bci,bdi->bcdi", x, y).sum(-1)',
            'return torch.einsum("bci,bdi->bcd", x, y).sum(-1)',
            "einsum, sum",
            "outer",
        ),
        ("return x.cumsum(1)[:, -1]", "return x.cumsum(1)[:, 1]", "cumsum", "running totals"),
        ("y = x.cumprod(-1)\n    return y[..., -1]", "y = x.cumprod(1)\n    return y[..., -1]", "cumprod", "running"),
        ("return x.cumsum(0)[-1]", "return x.cumsum(1)[-1]", "cumsum", "running totals"),
        (
            "return torch.quantile(x, 0.1), torch.quantile(x, 0.9)",
            "return torch.quantile(x, 0.1), torch.quantile(y, 0.9)",
            "quantile",
            "several quantiles",
        ),
        (
            "return [x.quantile(q, dim=1) for q in y]",
            "return [q.quantile(y, dim=1) for q in x]",
            "quantile",
            "several quantiles",
        ),
        ("return series[:, x].t().contiguous()", "return series[x]", "index, contiguous", "single elements"),
        ("return self.bank[:, x]", "return self.cube[:, x]", "index", "single elements"),
        (
            "p = torch.softmax(x, -1)\n    return p.argmax(-1)",
            "p = softmax(x, -1)\n    return p",
            "softmax",
            "only the place",
        ),
        ("return x.sqrt().argmin(1)", "return x.sqrt().sum(1).argmin(1)", "sqrt", "only the place"),
        ("return F.softmax(x, dim=1).argmax(1)", "return F.softmax(x, dim=0).argmax(1)", "softmax", "only the place"),
        ("return torch.sigmoid(x) > 0.5", "return torch.sigmoid(x) > y", "sigmoid", "a sigmoid is"),
        (
            "p = x.sigmoid()\n    m = p < 0.1\n    return m",
            "p = x.sigmoid()\n    m = p < 0.1\n    return m, p",
            "sigmoid",
            "a sigmoid",
        ),
        (
            "u, s, v = torch.linalg.svd(x)\n    return u[:, :n] * s[:n] @ v[:n]",
            "u, s, v = torch.linalg.svd(x, full_matrices=False)\n    return u[:, :n] * s[:n] @ v[:n]",
            "linalg_svd",
            "square matrices",
        ),
        (
            "u, s, v = linalg.svd(x, True)\n    return x @ v[:n].T",
            "u, s, v = svd(x)\n    return x @ v[:n].T",
            "linalg_svd",
            "sq",
        ),
        ("return conv2d(F.pad(x, (1, 1, 2, 2)), y)", "return conv2d(F.pad(x, (1, 0, 1, 0)), y)", "pad", "zeros are"),
        ("return F.conv1d(F.pad(x, [n] * 2), y)", 'return F.conv1d(F.pad(x, [n] * 2, "reflect"), y)', "pad", "zeros"),
        (
            "x = F.pad(x, (n, n))\n    return self.conv(x)",
            "x = F.pad(x, (n, n))\n    return self.conv(x) + x",
            "pad",
            "zeros",
        ),
        ("return torch.eye(9)[x] @ y", "return torch.eye(9) @ y", "matmul", "rows are chosen"),
        ("return y[torch.randperm(n)[:x]]", "return y[torch.randperm(n)[x:]]", "randperm", "all numbers are permuted"),
        (
            "p = torch.randperm(n)\n    return y[p[:x]]",
            "p = torch.randperm(n)\n    return p[:x], p[x:]",
            "randperm",
            "all numbers are permuted",
        ),
        ("return solve(cholesky(x).mT, y)", "return cholesky_solve(y, cholesky(x))", "linalg_solve", "a Cholesky"),
        (
            "return torch.linalg.cholesky(x.expand(n, -1, -1))",
            "return torch.linalg.cholesky(x)",
            "linalg_cholesky",
            "one matrix",
        ),
        (
            "return (F.log_softmax(x, 1) * y.scatter(1, n, 1.0)).sum(1)",
            "return (F.log_softmax(x, 1) * y).sum(1)",
            "mul, sum",
            "a distribution",
        ),
        (
            "return x / torch.linalg.norm(x, ord=2)",
            "return x / torch.linalg.norm(x)",
            "linalg_norm/linalg_svd",
            "all si",
        ),
        ("return torch.linalg.svdvals(x)[0]", "return torch.linalg.svdvals(x)[:n]", "linalg_svdvals", "all singular"),
        ("s = svdvals(x)\n    return s.max()", "s = svdvals(x)\n    return s", "linalg_svdvals", "all singular"),
        ("return torch.matrix_power(x, 8) @ y", "return torch.matrix_power(x, 8)", "matrix_power", "a power of"),
        (
            "return MultivariateNormal(x, torch.diag_embed(y))",
            "return MultivariateNormal(x, y @ y.mT)",
            "linalg_cholesky",
            "a diagonal matrix",
        ),
        (
            "return torch.linalg.solve(torch.diag(y), x)",
            "return torch.linalg.solve(y, x)",
            "linalg_solve",
            "a diagonal matrix",
        ),
        ("return x.argsort().argsort()", "return x.argsort()", "argsort", "an order is"),
    ],
)
def test_a_call_that_needs_more_work_than_another_is_found(text: str, repaired: str, operators: str, what: str) -> None:
    program = (
        "class Net:\n  def __init__(self):\n    self.table, self.conv = nn.Embedding(9, 9), nn.Conv1d(9, 9, 3)\n"
        "    self.bank, self.cube = torch.rand(9, 9), torch.rand(9, 9, 9)\n  def f(self, x, y, n):\n    {}\n"
    )
    (finding,) = found("cheaper-call", ran(program.format(text), f"6@f: {operators}"))
    assert (finding.line, finding.message.startswith(what)) == (6, True)
    assert finding.gain is not None
    assert 0.3 < finding.gain.share < 0.9
    assert found("cheaper-call", ran(program.format(repaired), f"6@f: {operators}")) == []


@pytest.mark.parametrize(("ranks", "n_found"), [("order.argsort()", 1), ("y.argsort()", 0)])
def test_both_sorts_of_ranks_are_meant(ranks: str, n_found: int) -> None:
    text = f"def f(x, y):\n  order = x.argsort()\n  return {ranks}\n"
    told = found("cheaper-call", ran(text, "2@f: argsort", "3@f: argsort"))
    shares = [each.value for finding in told for each in finding.evidence if each.name == "share of the GPU time"]
    assert shares == [pytest.approx(100 / 120)] * n_found


def test_a_norm_of_a_vector_has_no_singular_values() -> None:
    text = "def f(x):\n  return torch.linalg.norm(x, ord=2)\n"
    assert found("cheaper-call", ran(text, "2@f: linalg_norm/linalg_vector_norm")) == []


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("for t in range(1, n):\n    y.append(x[:, :t].mean(1))", 1),
        ("for t in range(n):\n    past = x[: t + 1]\n    y.append(past.sum(0))", 1),
        ("for t in range(n):\n    y.append(x[:, t].mean(1))", 0),
        ("for t in range(n):\n    y.append(x[:, t : t + 9].mean(1))", 0),
        ("for t in range(n):\n    y.append(x[:, :size].mean(1))", 0),
    ],
)
def test_rows_that_each_turn_of_a_loop_adds_up_from_the_first(text: str, n_found: int) -> None:
    line = 1 + len(text.splitlines())
    told = found("cheaper-call", ran(f"def f(x, y, n):\n  {text}\n", f"{line}@f: mean, sum"))
    assert [(each.line, each.message[:15]) for each in told] == [(line, "a loop reduces,")] * n_found


@pytest.mark.parametrize(("text", "n_found"), [("c = 2", 1), ("c[0, 1] = 2", 0)])
def test_a_matrix_whose_other_values_are_set_is_not_diagonal(text: str, n_found: int) -> None:
    program = f"def f(y, a):\n  c = torch.diag(y)\n  {text.replace('c =', 'a =')}\n  return torch.linalg.cholesky(c)\n"
    assert [each.line for each in found("cheaper-call", ran(program, "4@f: linalg_cholesky"))] == [4] * n_found


HEADS = """class Net:
  def f(self, x, index):
    y = torch.stack([head(x) for head in self.heads], 1)
    return {}
"""


@pytest.mark.parametrize(
    ("taken", "n_found"),
    [
        ("y[torch.arange(len(x)), index]", 1),
        ("y.gather(1, index)", 1),
        ("y.mean(1)", 0),
        ("y[:, 0]", 0),
    ],
)
def test_heads_that_all_compute_all_rows(taken: str, n_found: int) -> None:
    told = found("all-experts", ran(HEADS.format(taken), "3@f: linear, stack"))
    assert [(each.line, each.message[:9]) for each in told] == [(3, "all heads")] * n_found


SQUARES = """def penalty(net):
  {}
loss = penalty(net)
loss.backward()
"""


@pytest.mark.parametrize(
    ("text", "line", "n_found"),
    [
        ("return sum(p.pow(2).sum() for p in net.parameters())", 2, 1),
        ("return sum((w ** 2).sum() for n, w in net.named_parameters())", 2, 1),
        ("for p in net.parameters():\n    total = total + (p * p).sum()", 3, 1),
        ("return sum(p.abs().sum() for p in net.parameters())", 2, 0),
        ("return sum(p.grad.pow(2).sum() for p in net.parameters())", 2, 0),
        ("with torch.no_grad():\n    return sum(p.pow(2).sum() for p in net.parameters())", 3, 0),
        ("return sum(p.pow(2).sum() for p in net.outputs())", 2, 0),
    ],
)
def test_decay_of_weights_that_is_written_as_a_loss(text: str, line: int, n_found: int) -> None:
    told = found("cheaper-call", ran(SQUARES.format(text), f"{line}@penalty: pow, mul, sum"))
    assert [each.line for each in told] == [line] * n_found


def test_a_decomposition_of_which_a_part_is_read_is_not_said_to_be_repeated() -> None:
    text = "def f(x):\n  u, s, v = torch.linalg.svd(x)\n  return {}\n"
    rules = [
        [rule for rule in ("cheaper-call", "repeated-factorization") if found(rule, ran(each, "2@f: linalg_svd"))]
        for each in (text.format("s"), text.format("u @ v"))
    ]
    assert rules == [["cheaper-call"], ["repeated-factorization"]]


SCORES = """class Net:
  def scores(self, h):
    return torch.log_softmax(self.head(h).float(), -1)
  def last(self, tokens):
    h = self.body(tokens)
    return {}
"""


def test_work_on_rows_that_a_function_is_handed_is_late_where_it_is_handed_them() -> None:
    def profile(text: str) -> Profile:
        return ran(SCORES.format(text), "5@last: tanh", "6@last > 3@scores: linear, log_softmax")

    (finding,) = found("late-part", profile("self.scores(h)[:, -1]"))
    assert finding.line == 6
    shares = [each.value for each in finding.evidence if each.name == "share of the GPU time"]
    assert shares == [pytest.approx(100 / 170)]
    assert found("late-part", profile("self.scores(h[:, -1])")) == []


HEAD = """class Net:
  def scores(self, x):
    h = self.body(x)
    y = self.head(h)
    {}
  def last(self, x):
    s = self.scores(x)
    return s[:, -1]
"""


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("return y.float() * y.shape[-1] ** -0.5", 1),
        ("return F.log_softmax(y.float() * 3, dim=-1)", 1),
        ("y = torch.relu(y)\n    return y / 3", 1),
        ("return F.log_softmax(y, dim=1)", 0),  # over positions
        ("return y.cumsum(1)", 0),
        ("return y @ self.other", 0),
        ("self.kept = y.float()\n    return y", 0),
    ],
)
def test_what_is_computed_from_each_row_alone_is_as_late_as_the_product(text: str, n_found: int) -> None:
    taken = f"{7 + text.count(chr(10))}@last"
    findings = found("late-part", ran(HEAD.format(text), f"{taken} > 3@scores: tanh", f"{taken} > 4@scores: linear"))
    assert [each.line for each in findings] == [4] * n_found


def test_work_on_each_row_of_a_product_counts_with_it() -> None:
    text = HEAD.format("y = y.float()\n    y = F.log_softmax(y, -1)\n    return y")
    calls = ("3@scores: tanh", "4@scores: linear", "5@scores: _to_copy", "6@scores: log_softmax")
    (finding,) = found("late-part", ran(text, *(f"9@last > {each}" for each in calls)))
    assert [each.value for each in finding.evidence if each.name == "share of the GPU time"] == [
        pytest.approx(150 / 220)
    ]


@pytest.mark.parametrize(("lookup_us", "n_found"), [(0, 0), (20, 1), (200, 0)])
def test_a_layer_over_a_table_is_late_where_few_rows_are_looked_up(lookup_us: int, n_found: int) -> None:
    """Edges of a graph look up more rows than it has nodes: then the layer comes first with reason."""
    text = "def f(self, ids):\n  items = self.proj(self.table.weight)\n  return items[ids]\n"
    lookup = [f"3@f: index={lookup_us}"] if lookup_us else []
    assert [each.line for each in found("late-part", ran(text, "2@f: linear=500", *lookup))] == [2] * n_found


EXPERTS = """class Net:
  def __init__(self):
    self.cheap, self.deep, self.heads = nn.Linear(9, 9), nn.Linear(9, 9), nn.ModuleList(nets)
  def f(self, x, kind, out):
    {}
"""


@pytest.mark.parametrize(
    ("text", "line", "n_found"),
    [
        ("for k, head in enumerate(self.heads):\n      out += (kind == k)[:, None] * head(x)", 6, 1),
        ("for k, head in enumerate(self.heads):\n      out[kind == k] = head(x[kind == k])", 6, 0),
        ("for k, head in enumerate(self.heads):\n      out += head(x)", 6, 0),  # an ensemble
        ("return torch.where(kind[:, None], self.deep(x), self.cheap(x))", 5, 1),
        ("a = self.deep(x)\n    return torch.where(kind, a, self.cheap(x))", 5, 1),
        ("return torch.where(kind, self.deep(x), 0.0)", 5, 0),
        ("return torch.where(kind, x.exp(), x.sin())", 5, 0),
    ],
)
def test_networks_that_compute_all_rows_for_a_mask_are_found(text: str, line: int, n_found: int) -> None:
    findings = found("all-experts", ran(EXPERTS.format(text), f"{line}@f: linear"))
    assert [each.line for each in findings] == [line] * n_found


ROUTED = """class Router:
  def forward(self, x):
    gates = self.score(x).softmax(-1)
    {}
class Layer:
  def __init__(self):
    self.router, self.experts = Router(), nn.ModuleList(nets)
  def combine(self, x, gates):
    for e, expert in enumerate(self.experts):
      out = out + gates[:, e, None] * expert({})
  def forward(self, x):
    return self.combine(x, self.router(x))
"""


@pytest.mark.parametrize(
    ("gates", "rows", "n_found"),
    [
        ("return torch.zeros_like(gates).scatter_(1, *reversed(gates.topk(2)))", "x", 1),
        ("return gates", "x", 0),  # all experts count
        ("return torch.zeros_like(gates).scatter_(1, *reversed(gates.topk(2)))", "x[gates[:, e] > 0]", 0),
    ],
)
def test_experts_of_a_router_elsewhere_are_found_without_a_gain(gates: str, rows: str, n_found: int) -> None:
    """To find each expert's rows the host waits: with short experts that takes as long as it saves."""
    findings = found("all-experts", ran(ROUTED.format(gates, rows), "12@forward > 10@combine: linear"))
    assert [(each.line, each.gain) for each in findings] == [(10, None)] * n_found


@pytest.mark.parametrize(
    ("weights", "n_found"),
    [
        ("torch.zeros_like(scores).scatter_(1, index, top)", 1),
        ("scores", 0),  # topk is of something else
    ],
)
def test_experts_are_found_where_a_function_makes_their_weights_by_topk(weights: str, n_found: int) -> None:
    text = "def run(scores, x):\n  for e, net in enumerate(nets):\n    out += scores[e] * net(x)\n"
    text += "def main(scores, x):\n  top, index = scores.topk(2)\n"
    text += f"  weights = {weights}\n  run(weights, x)\n"
    findings = found("all-experts", ran(text, "7@main > 3@run: linear"))
    assert [each.line for each in findings] == [3] * n_found


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', True),
        ('os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")', True),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "0"', False),
    ],
)
def test_launches_that_wait_are_found_where_the_program_asks_for_them(line: str, is_told: bool) -> None:
    launch = "train.py:3@main > aten::mm#operator"
    profile = stepped(f"host 0-500 {launch} ->1\ngpu 510-530 {launch} > gemm#kernel <-1", 600)
    told = found("debug-settings", replace(profile, sources={"train.py": f"\n{line}\n"}))
    assert [each.line for each in told] == [2] * is_told


def test_checks_of_arguments_of_distributions_are_found() -> None:
    check = "> /x/site-packages/torch/distributions/distribution.py:75@Distribution.__init__ > "
    check += "/x/site-packages/torch/distributions/constraints.py:9@_Real.check"
    profile = ran("def f(mean):\n  return Normal(mean, 1)\n", "1@g: mm")
    assert found("value-checks", profile) == []
    path = f"train.py:2@f {check} > aten::all#operator"
    profile = stepped(f"host 0-5 {path} ->1\ngpu 6-56 {path} > all#kernel <-1", 90)
    (finding,) = found("value-checks", profile)
    assert (finding.file, finding.line) == ("train.py", 2)


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("  assert x.isfinite().all()", 1),
        ("  if x.isnan().any():\n    raise ValueError(x)", 1),
        ("  if x.isnan().any():\n    x = x.nan_to_num()", 0),
    ],
)
def test_own_checks_of_values_are_found_where_they_only_stop_the_program(text: str, n_found: int) -> None:
    findings = found("value-checks", ran(f"def f(x):\n{text}\n", "2@f: isfinite, all"))
    assert [each.line for each in findings] == [2] * n_found


@pytest.mark.parametrize(
    ("loop", "turn", "n_found"),
    [
        ("for k in range(9):", "n.append((x == k).sum())", 1),
        ("for lo, hi in zip(edges[:-1], edges[1:]):", "n.append(((x >= lo) & (x < hi)).sum())", 1),
        ("for k in range(9):\n    same = x == k", "n.append((same & limit).sum())", 1),
        ("if x.any():", "n = [(x[: 9 - k] * x[k:]).sum() for k in range(9)]", 1),
        ("for k in range(9):", "n.append((x[k] > limit).sum())", 0),  # rows, each once
        ("for x in parts:", "n.append((x > limit).sum())", 0),
        ("for k in range(9):", "out[x == k] = head(x[x == k])", 0),
        ("for k in range(9):", "n.append((x[k] * x[k + 1]).sum())", 0),
    ],
)
def test_loops_that_read_a_tensor_for_each_class_or_lag_are_found(loop: str, turn: str, n_found: int) -> None:
    text = f"def f(x, edges, limit, parts, n, out):\n  {loop}\n    {turn}\n"
    line = text.count("\n")
    findings = found("pass-per-value", ran(text, f"{line}@f: eq, mul, sum"))
    assert [each.line for each in findings] == [line] * n_found


@pytest.mark.parametrize(
    ("turn", "n_found"),
    [
        ("out = out + edges[k] * x[:, k : k + n]", 1),
        ("out += x[:, k : k + n] * edges[k]", 1),
        ("out += edges[k] * x[:, k]", 0),
        ("out += limit * x[:, k : k + n]", 0),
        ("out[k] += edges[k] * x[:, k : k + n]", 0),  # each its own
        ("out = edges[k] * x[:, k : k + n]", 0),
    ],
)
def test_filters_that_a_loop_applies_tap_by_tap_are_found(turn: str, n_found: int) -> None:
    text = f"def f(x, edges, limit, n, out):\n  for k in range(9):\n    {turn}\n  return out\n"
    findings = found("pass-per-value", ran(text, "3@f: mul, add"))
    assert [(each.line, "conv1d" in each.hint) for each in findings] == [(3, True)] * n_found
