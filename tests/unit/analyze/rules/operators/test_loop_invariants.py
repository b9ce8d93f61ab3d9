"""Parts of a line that stay the same in each turn of a loop, beside others that change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.model import FrameKind
from bragg.model.durations import DurationTable, buckets_of
from tests.support.told_by_text import found, ran

SINKHORN = """def f(cost, a, v, n):
  for _ in range(n):
    {}
  return v
def g(data, n):
  for cost, a, v in data:
    print(f(cost, a, v, n))
"""


@pytest.mark.parametrize(
    ("text", "operators", "n_found"),
    [
        ("v = a / (torch.exp(-cost / 9) @ v)", "exp", 1),
        ("v = a / (cost.float() @ v)", "to", 1),
        ("v = a / (-cost @ v)", "neg", 1),
        ("v = v + torch.cdist(cost, a) / v", "cdist", 1),
        ("v = a / (torch.exp(-cost / 9) @ v)", "matmul", 0),
        ("v = a / (torch.exp(-cost / v) @ v)", "exp", 0),
        ("v = torch.exp(torch.randn_like(cost)) @ v", "exp", 0),
        ("v = a / v", "exp", 0),
    ],
)
def test_an_operator_of_what_no_turn_changes_is_found_beside_others(text: str, operators: str, n_found: int) -> None:
    profile = ran(SINKHORN.format(text), f"7@g > 3@f: {operators}, tanh", "7@g > 3@f: matmul")
    told = found("loop-invariant", profile)
    shares = [each.value for finding in told for each in finding.evidence if each.name == "share of the GPU time"]
    assert [each.line for each in told] == [3] * n_found
    assert shares == [pytest.approx(50 / 170)] * n_found


def test_weights_that_are_turned_for_each_call_stay_the_same() -> None:
    text = (
        "class Net:\n  def forward(self, x):\n    return x @ self.weight.t().contiguous()\n"
        "net = Net()\nwhile n < 9:\n  x = net(x)\n"
    )
    assert [each.line for each in found("loop-invariant", ran(text, "6@<module> > 3@forward: contiguous, matmul"))] == [
        3
    ]
    trained = text + "  loss.backward()\n"
    assert found("loop-invariant", ran(trained, "6@<module> > 3@forward: contiguous, matmul")) == []


@pytest.mark.parametrize(
    ("text", "operators", "share"),
    [
        ("v = torch.exp(cost) @ torch.exp(v)", "exp", 1 / 2),
        ("v = (cost.T @ cost) @ v - cost.T @ a", "matmul", 2 / 3),
        ("v = torch.exp(v) @ torch.exp(v + 1)", "exp", 0),
    ],
)
def test_calls_of_one_operator_are_taken_for_equal(text: str, operators: str, share: float) -> None:
    told = found("loop-invariant", ran(SINKHORN.format(text), f"7@g > 3@f: {operators}, tanh"))
    assert [each.message[:32] for each in told] == ["a line calls the same several ti"] * (share > 0)
    gains = [each.gain.share for each in told if each.gain is not None]
    (alone,) = found("loop-invariant", ran(SINKHORN.format("v = torch.exp(cost) @ v"), "7@g > 3@f: exp, tanh"))
    assert alone.gain is not None
    assert gains == [pytest.approx(share * alone.gain.share, rel=0.01)] * (share > 0)


LAYERS = """class Net:
  def __init__(self):
    self.q, self.k, self.big = nn.Linear(9, 9), nn.Linear(9, 9), nn.Linear(9, 99)
  def forward(self, x, memory):
    {}
net = Net().eval()
for memory in data:
  x = start
  for _ in range(n):
    x = net(x, memory)
"""


@pytest.mark.parametrize(
    ("text", "n_found"),
    [
        ("return self.q(x) * self.k(memory)", 1),
        ("return self.q(x) * self.big(memory)", 0),  # which may take more, or less
        ("return self.q(x) * self.k(x)", 0),
    ],
)
def test_layers_of_one_size_are_taken_for_equal(text: str, n_found: int) -> None:
    profile = ran(LAYERS.format(text), "10@<module> > 5@forward: wrapped/linear, mul=20")
    frames = profile.tree.frames
    at = frames.name.index("aten::wrapped")
    names, files, kinds = [*frames.name], [*frames.file], frames.kind.copy()
    names[at], files[at], kinds[at] = "Module._wrapped_call_impl", "/x/torch/nn/modules/module.py", FrameKind.PYTHON
    changed = replace(frames, name=names, file=files, kind=kinds)
    told = found("loop-invariant", replace(profile, tree=replace(profile.tree, frames=changed)))
    assert [each.line for each in told] == [5] * n_found


STYLE = """class Critic:
  def forward(self, x):
    return self.body(x)
def style(critic, image, target):
  return critic(image) - critic(target)
critic = Critic().requires_grad_(False)
opt = torch.optim.Adam({})
while n < 9:
  loss = style(critic, image, target)
  loss.backward()
"""


@pytest.mark.parametrize(("optimized", "n_found"), [("[image]", 1), ("net.parameters()", 0), ("[image, target]", 0)])
def test_a_loop_that_trains_an_image_goes_on_from_it(optimized: str, n_found: int) -> None:
    """One that trains a network with the same data in each turn stands for one with new data."""
    told = found("loop-invariant", ran(STYLE.format(optimized), "9@<module> > 5@style > 3@forward: conv2d"))
    assert [(each.line, each.message[:6]) for each in told] == [(5, "a line")] * n_found


EMBED = """class Net:
  def forward(self, x):
    pos = F.interpolate(self.pos, size={})
    return x + pos
net = Net()
for x in images:
  y = net({})
  {}
"""


@pytest.mark.parametrize(
    ("size", "handed", "after", "n_found"),
    [
        ("x.shape[-2:]", "x", "print(y)", 1),
        ("(x.size(2), len(x))", "x", "print(y)", 1),
        ("x.shape[-2:]", "x", "y.sum().backward()", 0),  # trains what it interpolates
        ("x.amax().item()", "x", "print(y)", 0),
        ("x.shape[-2:]", "x[:, : int(k)]", "k = y.sum()", 0),
        ("x.shape[-2:]", "z", "z = torch.cat([z, y])", 0),
        ("x.shape[-2:]", "torch.stack(z)", "z.append(y)", 0),
    ],
)
def test_what_follows_from_shapes_is_computed_once_for_each(size: str, handed: str, after: str, n_found: int) -> None:
    called = "7@<module> > {}@forward: {}".format
    profile = ran(EMBED.format(size, handed, after), called(3, "upsample_bicubic2d"), called(4, "add"))
    told = found("loop-invariant", profile)
    assert [(each.line, "once for each shape" in each.hint) for each in told] == [(3, True)] * n_found


def test_masks_are_told_by_their_own_rule() -> None:
    text = EMBED.format("x.shape", "x", "print(y)").replace("F.interpolate(self.pos, size=", "self.pos.triu(*")
    called = "7@<module> > {}@forward: {}".format
    assert found("loop-invariant", ran(text, called(3, "triu"), called(4, "add"))) == []


def test_types_and_devices_stay_the_same() -> None:
    text = "def f(h, ids, n):\n  for layer in layers:\n    m = (ids == n).to(h.dtype)\n    h = layer(m @ h)\n"
    (finding,) = found("loop-invariant", ran(text, "3@f: eq, to", "4@f: matmul"))
    assert (finding.line, "stays the same" in finding.message) == (3, True)
    assert found("loop-invariant", ran(text.replace("h.dtype", "h"), "3@f: eq, to", "4@f: matmul")) == []


def test_launches_that_take_longer_and_longer_are_of_several_shapes() -> None:
    called = "7@<module> > {}@forward: {}".format
    text = EMBED.format("x.shape[-2:]", "x", "print(y)")
    profile = ran(text, called(3, "upsample_bicubic2d"), called(4, "add"))
    kernel = profile.tree.frames.name.index("kernel_upsample_bicubic2d")
    for ends_ns, n_found in ((55_000, 1), (90_000, 0)):
        took = np.linspace(50_000, ends_ns, 20).astype(np.int64)
        ones = np.ones(20, np.int64)
        durations = DurationTable((ones * kernel).astype(np.int32), buckets_of(took), ones, ones)
        assert len(found("loop-invariant", replace(profile, durations=durations))) == n_found


@pytest.mark.parametrize(
    ("first", "second", "operators", "n_found"),
    [
        ("y = rate(t, x)", "z = rate(t, x)", "mm", 1),
        ("y = rate(t, x) @ a", "z = rate(t, x) @ b", "mm, matmul=9", 1),
        ("y = rate(t, x) @ a", "z = rate(t, x) @ b", "mm=2, matmul", 0),  # what is computed of it differs
        ("y = torch.zeros_like(x).index_add_(0, t, a)", "z = torch.zeros_like(x).index_add_(0, t, a * a)", "mul", 0),
        ("y = torch.relu(x).index_add(0, t, a)", "z = torch.relu(x).index_add(0, t, a * a)", "relu=1, index_add", 0),
    ],
)
def test_a_call_is_made_twice_where_that_call_itself_works(
    first: str, second: str, operators: str, n_found: int
) -> None:
    text = f"def step(t, x, a, b):\n    {first}\n    {second}\n    return y, z"
    told = found("same-call", ran(text, f"2@step: {operators}", f"3@step: {operators}"))
    assert [each.line for each in told] == [3] * n_found


CAPTIONS = """class Layer:
  def forward(self, x, memory):
    k = self.kv(memory)
    return k @ x
class Captioner:
  def __init__(self):
    self.cross = nn.ModuleList(Layer() for _ in range(3))
  def step(self, x, memory):
    for layer in self.cross:
      x = layer(x, memory)
    return x{}
  def caption(self, memory):
    x = memory.mean(1)
    for _ in range(9):
      x = self.step(x, memory)
"""


@pytest.mark.parametrize(("after", "n_found"), [("", 1), (".backward()", 0), (", self.opt.step()", 0)])
def test_a_method_of_the_program_named_step_trains_only_if_it_says_so(after: str, n_found: int) -> None:
    profile = ran(
        CAPTIONS.format(after), "15@caption > 10@step > 3@forward: linear", "15@caption > 10@step > 4@forward: matmul"
    )
    assert [each.line for each in found("loop-invariant", profile)] == [3] * n_found


DIFFUSION = """class Score:
  def forward(self, x):
    bias = self.net(self.table)
    return x + bias
class Sampler:
  def __init__(self, options):
    self.net = options["net"]
  def sample(self, x):
    for _ in range(9):
      {}
sampler = Sampler({{"steps": 9, "net": Score()}})
"""


@pytest.mark.parametrize(("turn", "n_found"), [("x = x - self.net(x)", 1), ("total = total + self.net(x)", 0)])
def test_a_loop_that_hands_its_state_on_may_repeat_nearly_everything(turn: str, n_found: int) -> None:
    """One that repeats everything, and adds up results, stands for one with new data."""
    profile = ran(DIFFUSION.format(turn), "10@sample > 3@forward: mm=900", "10@sample > 4@forward: add=20")
    assert [each.line for each in found("loop-invariant", profile)] == [3] * n_found
