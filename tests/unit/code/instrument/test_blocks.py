"""Reading PTX into blocks: real kernels of Triton, and what must be refused."""

from __future__ import annotations

from collections import Counter

import pytest

from bragg.code.instrument.blocks import Activity, read_kernel
from bragg.code.source_place import user_place

triton = pytest.importorskip("triton")

from tests.support.timed_kernels import compiled, line_of  # noqa: E402

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def test_a_pipelined_product_waits_in_its_loop() -> None:
    kernel = read_kernel(compiled("matmul_tma").asm["ptx"])
    assert kernel.name == "matmul_tma"
    loop = [statement for block in kernel.blocks if block.in_loop for statement in block.statements]
    activities = Counter(each.activity for each in loop if each.activity)
    assert activities[Activity.BARRIER_WAIT] == 1
    assert activities[Activity.TMA_LOAD] == 2
    assert activities[Activity.MMA_WAIT] == 1
    product = next(each for each in loop if each.activity is Activity.MMA)
    place = user_place(product.place)
    assert place is not None
    assert place.line == line_of("matmul_tma", "tl.dot")


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_each_generation_has_products_in_a_loop(capability: int) -> None:
    kernel = read_kernel(compiled("matmul", capability).asm["ptx"])
    loop = [statement.activity for block in kernel.blocks if block.in_loop for statement in block.statements]
    assert Activity.MMA in loop
    assert Activity.COPY in loop


def test_a_commit_of_blackwells_products_waits_for_nothing() -> None:
    kernel = read_kernel(compiled("matmul_tma", 100).asm["ptx"])
    loop = [statement for block in kernel.blocks if block.in_loop for statement in block.statements]
    commits = [each for each in loop if "tcgen05.commit" in "".join(kernel.lines[each.first : each.last + 1])]
    assert [each.activity for each in commits] == [Activity.MMA]
    activities = Counter(each.activity for each in loop)
    # Warps wait for the products, and for the tiles, at barriers in memory.
    assert (activities[Activity.MMA_WAIT], activities[Activity.BARRIER_WAIT]) == (0, 2)


@pytest.mark.parametrize("capability", [90, 100])
def test_barriers_of_a_pipeline_are_told_apart(capability: int) -> None:
    kernel = read_kernel(compiled("matmul_tma", capability).asm["ptx"])
    loop = [statement for block in kernel.blocks if block.in_loop for statement in block.statements]
    used = {each.activity: set[int | None]() for each in loop if each.barrier is not None}
    for each in loop:
        if each.activity in used and each.barrier is not None:
            used[each.activity].add(each.barrier)
    products = used.get(Activity.MMA, set())
    assert len(used[Activity.TMA_LOAD]) == 1
    assert len(products) == (1 if capability == 100 else 0)
    assert used[Activity.BARRIER_WAIT] == used[Activity.TMA_LOAD] | products


def test_two_loops_and_what_is_between_them() -> None:
    kernel = read_kernel(compiled("softmax").asm["ptx"])
    first, last = (
        next(n for n, block in order if block.in_loop)
        for order in (list(enumerate(kernel.blocks)), list(enumerate(kernel.blocks))[::-1])
    )
    assert first < last
    assert any(not block.in_loop for block in kernel.blocks[first:last])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "0 kernels"),
        (HEAD + ".visible .entry a() {\nret;\n}\n.visible .entry b() {\nret;\n}\n", "2 kernels"),
        (HEAD + ".visible .entry a() {\nret;\n", "braces"),
        (HEAD + ".visible .entry a() {\ncall f, ();\nret;\n}\n", "not inlined"),
        (HEAD + ".func f() {\nret;\n}\n.visible .entry a() {\nret;\n}\n", "not inlined"),
    ],
)
def test_what_is_no_kernel_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_kernel(text)
