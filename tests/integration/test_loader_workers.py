"""Workers of PyTorch's data loaders stand in the profile of the program that started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bragg import formats

PROGRAM = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, number):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return torch.zeros(2)
if __name__ == "__main__":
    for batch in DataLoader(Images(), batch_size=2, num_workers=2):
        batch.sum()
"""


def recorded(directory: Path, *options: str) -> list[str]:
    (directory / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "bragg", "run", "--backend", "cpu", *options, "train.py"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)
    return sorted(path.name for path in directory.glob("*.bragg"))


def test_a_run_with_a_data_loader_is_one_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert recorded(tmp_path) == ["train.bragg"]
    profile = formats.load(tmp_path / "train.bragg")
    assert len(profile.run.workers) == 2
    assert profile.total("worker_time") > 60e6
    loads = [node for node in range(len(profile.tree)) if profile.tree.label(node).endswith("@Images.__getitem__")]
    assert sum(profile.inclusive("worker_time")[loads]) > 40e6


def test_who_names_each_process_gets_a_file_of_each(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert len(recorded(tmp_path, "-o", "train-%p.bragg")) == 3
