"""Regions and steps of programs that train with real PyTorch on the CPU."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from bragg import formats
from bragg.grouping.regions import group_by_region
from bragg.model import Profile
from bragg.views.text.training_steps import steps_line
from tests.support.runs import Recorder, entered

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

SETUP = """
    import copy, pickle, sys, threading
    import torch
    from torch.utils.checkpoint import checkpoint
    from torch.utils.data import DataLoader, TensorDataset

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(2))
        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=True)
            return torch.relu(x)

    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    batches = DataLoader(TensorDataset(torch.ones(24, 8)), batch_size=4)
"""

ACCUMULATING = """
    for number, (batch,) in enumerate(batches):
        net(batch.requires_grad_()).sum().backward()
        if number % 3 == 2:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
"""

# As Lightning's: the optimizer calls what computes the gradients.
BY_CLOSURE = """
    def closure():
        optimizer.zero_grad()
        loss = net(torch.ones(4, 8, requires_grad=True)).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
"""

FAILING = """
    class Failing(torch.optim.Optimizer):
        def __init__(self):
            super().__init__([torch.nn.Parameter(torch.ones(1))], {})
        def step(self, closure=None):
            closure()

    for fail in (lambda: net("no tensor"), lambda: Failing().step(lambda: 1 / 0), lambda: torch.ones(1).backward()):
        try:
            fail()
        except (ZeroDivisionError, RuntimeError, TypeError, AttributeError):
            pass
    thread = threading.Thread(target=lambda: net(torch.ones(4, 8, requires_grad=True)).sum().backward())
    thread.start()
    thread.join()
    leaf = torch.ones(1, requires_grad=True)
    torch.autograd.grad(leaf * 2, leaf)
"""


def calls(profile: Profile) -> dict[str, int]:
    grouped = group_by_region(profile)
    counts = grouped.own("region_calls").tolist()
    return {grouped.tree.label(node) or "step": counts[node] for node in range(len(counts)) if counts[node]}


def test_regions_of_a_program_are_recorded(tmp_path: Path) -> None:
    program = SETUP + ACCUMULATING + BY_CLOSURE + FAILING
    profile = Recorder(tmp_path).program(program, framework="off", regions="all", sample_interval_us=0).main
    assert calls(profile) == {"step": 5, "data": 6, "forward": 10, "backward": 11, "optimizer": 5}
    # The data loader is also entered to begin, and to hear that there is nothing left, and gradients
    # are cleared twice outside of steps.
    names = ("data", "forward", "backward", "optimizer")
    assert [entered(profile, f"torch: {name}") for name in names] == [8, 11, 12, 8]
    grouped = group_by_region(profile)
    assert grouped.own("region_time").min() >= 0
    assert grouped.total("region_time") == profile.meta["regions"]["step"]["total_ns"]


def test_steps_are_recorded_without_an_option(tmp_path: Path) -> None:
    profile = Recorder(tmp_path).program(SETUP + ACCUMULATING + BY_CLOSURE, sample_interval_us=0).main
    assert profile.meta["regions"].keys() == {"step"}
    assert profile.meta["regions"]["step"]["count"] == 4  # from the end of the first
    assert re.match(r"[1-5] steps? of [\d.]+ [um]?s(?: after the first|$)", steps_line(profile))


def test_a_timeline_shows_steps_and_regions_on_a_track_of_their_own(tmp_path: Path) -> None:
    options = {"framework": "off", "regions": "all", "data": "trace", "sample_interval_us": 0}
    Recorder(tmp_path).program(SETUP + ACCUMULATING, **options)
    profile = formats.load(tmp_path / "program.bragg")
    track = [profile.tracks.label(track) for track in range(len(profile.tracks))].index("training steps")
    slices = profile.slices.take(profile.slices.track == track)
    names = [profile.tree.label(node) for node in slices.node.tolist()]
    counts = {"step": 2, "data": 8, "forward": 6, "backward": 6, "optimizer": 4}
    assert {name: names.count(name) for name in names} == counts
    is_step = np.array(names) == "step"
    ends_ns = slices.start_ns + slices.duration_ns
    assert slices.start_ns[is_step][1] == ends_ns[is_step][0]
    inside = (slices.start_ns >= slices.start_ns[is_step][0]) & (ends_ns <= ends_ns[is_step][1])
    assert [names[row] for row in np.flatnonzero(inside)].count("forward") == 6


def test_a_recording_leaves_pytorch_as_it_was_and_compiles_the_same_graphs(tmp_path: Path) -> None:
    program = (
        SETUP
        + """
    import bragg
    import torch._dynamo as dynamo

    optim, data = torch.optim, torch.utils.data
    dynamo.config.recompile_limit = 2

    class Tanh(torch.nn.Module):
        def forward(self, x): return torch.tanh(x)
    class Sin(torch.nn.Module):
        def forward(self, x): return torch.sin(x)
    class Cos(torch.nn.Module):
        def forward(self, x): return torch.cos(x)
    places = [(torch.nn.Module, "__call__"), (torch.autograd.Variable, "_execution_engine"), (optim.Adam, "step"),
              (optim.Optimizer, "zero_grad"), (optim.Optimizer, "_patch_step_function"), (data.DataLoader, "__iter__"),
              (data.dataloader._BaseDataLoaderIter, "__next__")]

    def compiled():
        dynamo.reset()
        dynamo.utils.counters.clear()
        small = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        run = torch.compile(small, backend="aot_eager", fullgraph=True)
        for _ in range(3):
            run(torch.ones(4, 8)).sum().backward()
            optimizer.step()
        # Of one class each: what all of them are called through must not count as one that is compiled again.
        for kind in Tanh, Sin, Cos:
            torch.compile(kind(), backend="eager")(torch.ones(4))
        torch.compile(optimizer.step, backend="eager")()
        counters = dynamo.utils.counters
        return dict(counters["stats"]), dict(counters["frames"]), dict(counters["graph_break"])

    before = [getattr(*place) for place in places]
    alone = compiled()
    session = bragg.start(sys.argv[1], backend="cpu", regions="all", modules=True)
    assert all(getattr(*place) is not was for place, was in zip(places, before))
    assert compiled() == alone, alone
    pickle.loads(pickle.dumps(net)), copy.deepcopy(net), copy.deepcopy(optimizer), pickle.dumps(optimizer)
    class Later(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)
    later = Later(net.parameters(), 0.1)
    session.stop()
    assert [getattr(*place) for place in places] == before
    assert Later.step.__globals__["__name__"] == "torch.optim.optimizer"
    later.step()
    scheduler.step()
    """
    )
    command = [sys.executable, "-c", dedent(program), str(tmp_path / "run.bragg")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    # What the compiler differentiates to make its graph is not a backward pass.
    assert formats.load(tmp_path / "run.bragg").meta["regions"]["backward"]["count"] == 3
