from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze import compiled_kernels
from bragg.analyze.causes.evidence import Evidence
from bragg.code.source_map import KernelCode
from bragg.model.kernels.compiled import CompiledKernel
from tests.support.profiles import profile_from_text


def test_only_texts_of_kernels_that_matter_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(code: KernelCode, _: object) -> CompiledKernel:
        read.append(code.key)
        return CompiledKernel(code.key)

    monkeypatch.setattr(compiled_kernels, "facts_of", noted)
    lines = [f"  kernel{number} {1000 if number < 3 else 1}us" for number in range(200)]
    sources = {f"kernel:kernel{number}/{number:08x}.ptx": "" for number in range(200)}
    evidence = Evidence(replace(profile_from_text("\n".join(["root", *lines])), sources=sources))
    hot = evidence.hot_kernels
    assert [kernel.name for kernel in hot] == ["kernel0", "kernel1", "kernel2"]
    assert [kernel.compiled.key for kernel in hot if kernel.compiled] == [f"kernel{n}/{n:08x}" for n in range(3)]
    assert len(evidence.compiled) == 200
    assert len(read) == 3


def test_shares_are_of_all_gpu_time_and_one_name_is_one_kernel() -> None:
    profile = profile_from_text("root\n  a 60us x2 @0\n  scope\n    a 20us x2 @1\n    b 20us x4 @0")
    first, second = Evidence(profile).hot_kernels
    assert (first.name, first.share, first.mean_ns) == ("a", 0.8, 20_000)
    assert (second.name, second.share, second.compiled, second.num_sms) == ("b", 0.2, None, 0)


def test_samples_tell_the_share_of_a_line() -> None:
    from bragg.model import Place
    from tests.support.sampled_kernels import sampled_profile

    profile = sampled_profile()
    kernel = next(each for each in Evidence(profile).hot_kernels if each.name.startswith("softmax"))
    frames = profile.tree.frames
    row = next(row for row, file in enumerate(frames.file) if file.endswith(".py") and frames.line[row])
    share, is_measured = kernel.share_of_lines([Place(frames.file[row], int(frames.line[row]))])
    assert is_measured
    assert 0 < share <= 1
