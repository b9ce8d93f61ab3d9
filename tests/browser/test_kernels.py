"""The table of kernels: order, filter, groups, and configurations."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bragg.model import DurationTable, KernelTable, Profile
from bragg.model.durations import buckets_of
from tests.support.profiles import profile_from_text
from tests.support.waiting import expect, expect_value

TEXT = """
root
  train.py:12@step
    matmul<BM=64 w4 s3> 300us x3 @0
    matmul<BM=128 w4 s3> 500us x1 @0
  eval.py:3@check
    relu 200us x2 @0
"""


def profile() -> Profile:
    """Three kernels on an H200, the first one launched in two ways."""
    found = profile_from_text(TEXT)
    names = found.tree.frames.name
    first, second, third = (names.index(name) for name in ("matmul<BM=64 w4 s3>", "matmul<BM=128 w4 s3>", "relu"))
    rows = {name: np.zeros(4, np.int64) for name in KernelTable.columns()}
    rows.update(
        frame=np.array([first, first, second, third]),
        registers=np.array([64, 64, 255, 16]),
        dynamic_shared_bytes=np.array([0, 0, 200_000, 0]),
        grid_x=np.array([8, 16, 4, 2]),
        block_x=np.array([128, 128, 256, 1024]),
        count=np.array([1, 2, 1, 2]),
        **{name: np.ones(4, np.int64) for name in ("grid_y", "grid_z", "block_y", "block_z")},
    )
    times = np.array([50_000, 100_000, 150_000, 500_000, 100_000, 100_000])
    durations = DurationTable(
        np.array([first] * 3 + [second, third, third]), buckets_of(times), np.ones(6, np.int64), np.zeros(6, np.int64)
    )
    meta = {"devices": [{"name": "NVIDIA H200", "arch": "90"}]}
    return replace(found, meta=meta, kernels=KernelTable(**rows), durations=durations)


@pytest.fixture
def kernels(pages: Any) -> Any:
    return pages.open(profile(), "view=kernels&by=specialization")


def cells(page: Any, column: str) -> Any:
    return page.locator(f"tr.row td.{column}")


def test_kernel_with_most_time_is_first(kernels: Any) -> None:
    expect(cells(kernels, "name")).to_have_text(["matmul<BM=128 w4 s3>", "matmul<BM=64 w4 s3>", "relu"])
    expect(cells(kernels, "share")).to_have_text(["50.0 %", "30.0 %", "20.0 %"])
    expect(cells(kernels, "calls")).to_have_text(["1", "3", "2"])


def test_column_sorts_both_ways(kernels: Any) -> None:
    kernels.get_by_role("button", name="regs").click()
    expect(cells(kernels, "registers")).to_have_text(["255", "64", "16"])
    kernels.get_by_role("button", name="regs").click()
    expect(cells(kernels, "registers")).to_have_text(["16", "64", "255"])
    expect(kernels).to_have_url(re.compile("sort=registers&order=up$"))


def test_percentiles_come_from_single_launches(kernels: Any) -> None:
    medians, rest = (cells(kernels, column).all_inner_texts() for column in ("p50", "p95"))
    assert [float(text.split()[0]) for text in medians] == pytest.approx([500, 100, 100], rel=0.032)
    assert float(rest[1].split()[0]) == pytest.approx(150, rel=0.032)


def test_occupancy_names_its_limit(kernels: Any) -> None:
    # 255 registers: 8 warps of 64, one block of 8; 64 registers: 32 warps; 16: all that 1024 threads leave.
    expect(cells(kernels, "occupancy")).to_have_text(["12.5 %", "50.0 %", "100.0 %"])
    expect(cells(kernels, "limit")).to_have_text(["registers", "registers", "\u2013"])


def test_filter_leaves_matches_and_their_share(kernels: Any) -> None:
    kernels.keyboard.press("/")
    kernels.keyboard.type("/BM=\\d+/")
    expect(cells(kernels, "name")).to_have_count(2)
    expect(kernels.locator(".tools .note")).to_have_text("2 rows, 80.0 % of the GPU time of the whole run")


def test_specializations_are_one_row_by_kernel(kernels: Any) -> None:
    kernels.get_by_label("a row for each").select_option("kernel")
    expect(cells(kernels, "name")).to_have_text(["matmul2 variants", "relu"])
    expect(cells(kernels, "calls")).to_have_text(["4", "2"])


def test_modules_are_files_of_the_program(kernels: Any) -> None:
    kernels.get_by_label("a row for each").select_option("module")
    expect(cells(kernels, "name")).to_have_text(["train.py", "eval.py"])
    expect(cells(kernels, "share")).to_have_text(["80.0 %", "20.0 %"])


def test_row_opens_its_configurations_and_call_paths(kernels: Any) -> None:
    kernels.get_by_text("matmul<BM=64 w4 s3>").click()
    rows = kernels.locator(".more table tbody tr")
    expect_value(
        lambda: [row.split("\t")[:3] for row in rows.all_inner_texts()], [["2", "16", "128"], ["1", "8", "128"]]
    )
    kernels.get_by_role("button", name="Hottest call path").click()
    expect(kernels.locator(".flame .detail strong")).to_have_text("matmul<BM=64 w4 s3>")


def test_back_returns_to_the_open_row(kernels: Any) -> None:
    kernels.get_by_text("relu").click()
    kernels.get_by_role("button", name="Callers").click()
    expect(kernels.get_by_label("Call path")).to_have_text("total \u203a relu")
    kernels.go_back()
    expect(kernels.locator("tr.row[aria-expanded=true] td.name")).to_have_text("relu")
