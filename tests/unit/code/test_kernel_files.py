from __future__ import annotations

from types import SimpleNamespace

from bragg.code.kernel_files import attributes_of


def test_a_kernel_is_noted_with_its_hash_and_the_file_that_describes_it() -> None:
    group = {"softmax.ttir": "/c/AB/softmax.ttir", "softmax.json": "/c/AB/softmax.json"}
    kernel = SimpleNamespace(name="softmax", hash="0123abcd4567", metadata_group=group)
    assert attributes_of(kernel) == [("code", "softmax/0123abcd"), ("code_files", "/c/AB/softmax.json")]


def test_a_kernel_without_a_description_is_not_noted() -> None:
    kernel = SimpleNamespace(name="softmax", hash="0123abcd4567", metadata_group={"softmax.ttir": "/c/softmax.ttir"})
    assert attributes_of(kernel) == []
