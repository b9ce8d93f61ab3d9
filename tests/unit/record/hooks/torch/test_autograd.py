from __future__ import annotations

from bragg.record.hooks.torch.autograd import NodeLayout, layout_of

NODE = 0x7F00_0000_1000


def intrusive(number: int, thread: int = 7) -> tuple[int, list[int], int]:
    return NODE, [0xC0DE, 2, number, 0, 1, thread, 0, 0, 0, 0], number


def shared(number: int, thread: int = 7) -> tuple[int, list[int], int]:
    return NODE, [0xC0DE, NODE, 0xBEEF, number, 0, 1, thread, 0, 0, 0], number


def test_layouts_of_both_kinds_of_references_are_told_apart() -> None:
    assert layout_of([intrusive(3), intrusive(4)]) == NodeLayout(True, 16, 40, 7)
    assert layout_of([shared(3), shared(4)]) == NodeLayout(False, 24, 48, 7)


def test_a_layout_must_fit_all_nodes() -> None:
    address, words, number = intrusive(4)
    assert layout_of([intrusive(3), (address, words, number + 1)]) is None
    assert layout_of([intrusive(3), intrusive(4, thread=8)]) is None


def test_nodes_without_a_thread_fit_none() -> None:
    assert layout_of([intrusive(3, thread=0)]) is None
