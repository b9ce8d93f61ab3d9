"""The files that are written of one kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from bragg import formats
from bragg.analyze.bundle.files import bundle_of
from bragg.cli.verbs.analyze import analyze
from bragg.errors import UsageError
from tests.support.recordings import RECORDINGS
from tests.support.sampled_kernels import sampled_profile

PRODUCT = RECORDINGS[0].parent / "kernels" / "h100-old-tensor-cores.bragg"


def test_a_bundle_has_the_texts_the_facts_and_a_script() -> None:
    bundle = bundle_of(formats.load(PRODUCT), "product")
    files = bundle.files
    assert list(files) == ["kernel.ttir", "kernel.ttgir", "kernel.ptx", "kernel.sass", "facts.json", "reproduce.py"]
    assert "tt.func public @product" in files["kernel.ttir"]
    facts = json.loads(files["facts.json"])
    assert (facts["num_warps"], facts["num_stages"], facts["registers"], facts["target"]) == (2, 3, 128, "cuda:90")
    assert facts["launches"][0]["grid"] == [64, 64, 1]
    assert [(each["name"], each["divisibility"]) for each in facts["arguments"]] == [(name, 16) for name in "abcK"]
    assert facts["mean_ns"] == pytest.approx(537_683, abs=1)
    assert facts["versions"]["triton"]


def test_a_part_of_a_name_is_enough() -> None:
    profile = formats.load(PRODUCT)
    bundle = bundle_of(profile, "duct<BM=64 .* w2")
    assert (bundle.kernel, bundle.others) == ("product<BM=64 BN=64 BK=32 PRECISION=tf32 w2 s3 f16>", [])
    assert json.loads(bundle.files["facts.json"])["name"] == bundle.kernel
    with pytest.raises(UsageError, match="not a regular expression"):
        bundle_of(profile, "product<(")


def test_of_several_kernels_the_hottest_is_taken_and_the_others_are_named() -> None:
    bundle = bundle_of(sampled_profile(), "softmax")
    assert (bundle.kernel, bundle.others) == ("softmax<BLOCK=1024 w4 s3>", ["softmax<BLOCK=64 w4 s3>"])
    assert json.loads(bundle.files["facts.json"])["mean_ns"] == 9000


def test_a_kernel_without_code_is_no_bundle() -> None:
    with pytest.raises(UsageError, match="no code of a kernel softmax") as error:
        bundle_of(formats.load(PRODUCT), "softmax")
    assert error.value.hint == "It has that of product"


def test_the_files_are_written_and_the_script_asks_for_what_the_profile_has_not(tmp_path: Path) -> None:
    run = CliRunner().invoke(analyze, [str(PRODUCT), "--bundle", "product", "-o", str(tmp_path / "product")])
    assert run.exit_code == 0, run.output
    script = [sys.executable, str(tmp_path / "product" / "reproduce.py")]
    told = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2
    assert "the profile has no values: say --arg-K" in told.stderr
    if find_spec("triton"):
        told = subprocess.run([*script, "--compile-only"], capture_output=True, text=True, timeout=120, check=True)
        asked = "num_warps=2 num_stages=3 num_ctas=1"
        compiled = f"compiled for cuda:90 with {asked}: 16384 (recorded: 16384) B of shared memory\n"
        remark = "remark: MMA version 3 acceleration not applied due to unsupported shapes or data types."
        assert told.stdout == compiled
        assert f"/tests/support/slow_kernels.py:80:36: {remark}\n" in told.stderr
        without_gpu = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        told = subprocess.run(
            [*script, "--arg-K", "4096"], capture_output=True, text=True, timeout=120, check=False, env=without_gpu
        )
        assert (told.returncode, told.stdout) == (1, compiled)
        why = "PyTorch finds no GPU here" if find_spec("torch") else "PyTorch is not installed"
        assert told.stderr.endswith(f"It is not timed: {why}.\n")


@pytest.mark.skipif(not find_spec("triton"), reason="compiles a kernel")
def test_the_script_compiles_with_every_option_of_the_recorded_kernel(tmp_path: Path) -> None:
    arguments = [str(PRODUCT.with_name("h100-register-spills.bragg")), "--bundle", "product", "-o", str(tmp_path / "b")]
    assert CliRunner().invoke(analyze, arguments).exit_code == 0
    script = [sys.executable, str(tmp_path / "b" / "reproduce.py"), "--compile-only"]
    own_cache = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    told = subprocess.run(script, capture_output=True, text=True, timeout=120, check=True, env=own_cache)
    assert "with num_warps=4 num_stages=3 num_ctas=1 maxnreg=96: 49152 (recorded: 49152) B" in told.stdout
    (ptx,) = (tmp_path / "cache").rglob("*.ptx")
    assert ".maxnreg 96" in ptx.read_text(encoding="utf-8")


def test_o_is_for_bundles() -> None:
    run = CliRunner().invoke(analyze, [str(PRODUCT), "-o", "x"])
    assert run.exit_code != 0
