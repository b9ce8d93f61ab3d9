from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.kernel_choice import choose_kernel, every_kernel, why_absent
from bragg.errors import NothingRecorded, UsageError
from tests.support.profiles import profile_from_text
from tests.support.sampled_kernels import KEY, sampled_profile

HOTTEST = "softmax<BLOCK=1024 w4 s3>"


def test_without_a_name_the_kernel_with_most_samples_is_meant() -> None:
    chosen = choose_kernel(sampled_profile(), None)
    assert (chosen.name, chosen.others) == (HOTTEST, [])
    assert chosen.code is not None
    assert chosen.code.key == KEY


def test_without_a_name_a_kernel_with_code_is_meant_however_hot_others_are() -> None:
    profile = sampled_profile()
    name = [label.replace("softmax<BLOCK=1024 w4 s3>", "gemm") for label in profile.tree.frames.name]
    tree = replace(profile.tree, frames=replace(profile.tree.frames, name=name))
    chosen = choose_kernel(replace(profile, tree=tree), None)
    assert (chosen.name, chosen.code is not None) == ("softmax<BLOCK=64 w4 s3>", True)


def test_of_several_specializations_the_hottest_is_shown_and_the_others_are_named() -> None:
    chosen = choose_kernel(sampled_profile(), "softmax")
    assert (chosen.name, chosen.others) == (HOTTEST, ["softmax<BLOCK=64 w4 s3>"])


def test_a_whole_name_means_no_other() -> None:
    chosen = choose_kernel(sampled_profile(), "softmax<BLOCK=64 w4 s3>")
    assert (chosen.name, chosen.others) == ("softmax<BLOCK=64 w4 s3>", [])


def test_all_kernels_come_with_their_code_the_hottest_first() -> None:
    kernels = every_kernel(sampled_profile())
    assert [kernel.name for kernel in kernels] == [HOTTEST, "other<BLOCK=1 w4 s3>", "softmax<BLOCK=64 w4 s3>"]
    assert [kernel.code is not None for kernel in kernels] == [True, False, True]


def test_an_expression_is_searched_for() -> None:
    assert choose_kernel(sampled_profile(), "^o.*BLOCK=1 ").name == "other<BLOCK=1 w4 s3>"


def test_a_kernel_whose_code_was_not_noted_has_that_of_its_symbol() -> None:
    profile = replace(sampled_profile(), meta={})
    chosen = choose_kernel(profile, None)
    assert chosen.code is not None
    assert choose_kernel(profile, "other").code is None


def test_a_kernel_that_is_not_there_is_an_error_that_names_those_with_code() -> None:
    with pytest.raises(UsageError, match="no kernel is called 'gelu'") as caught:
        choose_kernel(sampled_profile(), "gelu")
    assert caught.value.hint == f"Those with code: {HOTTEST}, softmax<BLOCK=64 w4 s3>"
    with pytest.raises(UsageError) as caught:
        choose_kernel(profile_from_text("root\n  gemm 1us"), "gelu")
    assert caught.value.hint.startswith("No kernel of this profile has code: ")
    with pytest.raises(UsageError, match="not a regular expression"):
        choose_kernel(sampled_profile(), "(")


def test_a_profile_without_kernels_is_told() -> None:
    with pytest.raises(NothingRecorded, match="no kernels"):
        choose_kernel(profile_from_text("root\n  forward host=1us"), None)


def test_what_is_missing_of_a_kernel_is_that_of_its_code() -> None:
    profile = sampled_profile()
    profile.meta["kernel_code"] = {KEY: "nvdisasm was not found"}
    assert why_absent(profile, choose_kernel(profile, None)) == "nvdisasm was not found"
    assert why_absent(profile, choose_kernel(profile, "other")) == ""
