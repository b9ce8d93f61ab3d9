"""PyTorch: operators of a backward pass below the forward operators that they belong to.

A node of autograd keeps the number that it was made with and the thread that made it. Where it keeps them is learned
from nodes whose numbers PyTorch tells, so that no version's layout is assumed.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from bragg.core import core
from bragg.record.hooks.torch.operators import library_of
from bragg.record.inside.notes import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


# The fields of interest are among the first ones, behind the virtual table and the reference count.
_WORDS = 10
_WORD_BYTES = 8
# From the sequence number to the number of the thread: past the topological number and a flag.
_THREAD_AFTER_NUMBER = 3


@dataclass(frozen=True)
class NodeLayout:
    """Where a node of autograd keeps what it is known by.

    Attributes:
        counts_references_itself: It is held by `c10::intrusive_ptr` rather than by `std::shared_ptr`.
        number_offset: Its sequence number, B.
        thread_offset: The number of its thread, B.
        thread_number: That of the thread that asked.
    """

    counts_references_itself: bool
    number_offset: int
    thread_offset: int
    thread_number: int


def follow_backward(torch: ModuleType) -> None:
    """Let the core know the nodes of autograd; a PyTorch that it cannot know costs a note."""
    layout = _learn_layout(torch)
    if layout is None or not core.follow_autograd(library_of(torch), **vars(layout)):
        note(f"PyTorch {torch.__version__} has unknown autograd nodes: backward is not shown below forward")


def layout_of(nodes: Sequence[tuple[int, Sequence[int], int]]) -> NodeLayout | None:
    """The layout that fits nodes made by one thread, one after the other; None when none or several do.

    Args:
        nodes: Of each its address, its first words and its sequence number.
    """
    fitting = [
        NodeLayout(counts_references_itself, place * _WORD_BYTES, (place + _THREAD_AFTER_NUMBER) * _WORD_BYTES, thread)
        for counts_references_itself, place in ((True, 2), (False, 3))
        for thread in {words[place + _THREAD_AFTER_NUMBER] for _, words, _ in nodes}
        if thread > 0
        and all(
            words[place] == number
            and words[place + _THREAD_AFTER_NUMBER] == thread
            # With std::enable_shared_from_this a node begins with a pointer to itself.
            and (words[1] == address) is not counts_references_itself
            for address, words, number in nodes
        )
    ]
    return fitting[0] if len(fitting) == 1 else None


def _learn_layout(torch: ModuleType) -> NodeLayout | None:
    with torch.enable_grad():
        leaf = torch.ones((), requires_grad=True)
        nodes = [(leaf * 1).grad_fn for _ in range(3)]
    memory = os.open("/proc/self/mem", os.O_RDONLY)  # Reading through it cannot crash, wherever an address leads.
    try:
        # A node's Python object begins with its header and a pointer to the node.
        addresses = [_words(memory, id(node) + object.__basicsize__, 1)[0] for node in nodes]
        return layout_of(
            [
                (address, _words(memory, address, _WORDS), node._sequence_nr())
                for address, node in zip(addresses, nodes, strict=True)
            ]
        )
    except (AttributeError, OSError, struct.error):
        return None
    finally:
        os.close(memory)


def _words(memory: int, address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}Q", os.pread(memory, count * _WORD_BYTES, address))
