"""Texts are parts of what JAX 0.10.2 prints for a CPU, and 0.11.2 for a GPU."""

from __future__ import annotations

import pytest

from bragg.grouping.hlo_names import (
    BOTH_BRANCHES,
    COMPLEX,
    CONSTANT,
    COSTLY_ORDER,
    MOSTLY_UNUSED,
    PAIRWISE,
    UNTIL_LAST,
    VECTORS_UNUSED,
    ZEROS_AND_ONES,
)
from bragg.grouping.hlo_program import NOWHERE, HloPlace, HloState
from bragg.record.hooks.jax.hlo.text import operations_in

LAYOUT = "entry_computation_layout={(f32[4000,480]{1,0}, f32[64]{0})->(f32[4000,480]{1,0}, f32[64]{0})}"
FILE = 'source_file="sea.py"'
WHERE = f'metadata={{op_name="jit(f)/jit(_where)/select_n" {FILE} source_line=7}}'
LOOP = f'metadata={{op_name="jit(f)/while" {FILE} source_line=3}}'


def states_of(entry: str, fused: str = "", header: str = LAYOUT) -> dict[str, HloState]:
    """Of the operations of a module that have one."""
    text = f"HloModule jit_f, {header}\n\n{fused}\nENTRY %main.1 (x: f32[4000,480]) -> f32[4000,480] {{\n{entry}\n}}\n"
    found = operations_in(text, lambda _: False)
    return {name: each.state for name, each in found.items() if each.state.name}


UPDATE = f"""\
  %x.1 = f32[4000,480]{{1,0}} parameter(0), metadata={{op_name="memory[\\'obs\\']"}}
  %y.1 = f32[64]{{0}} parameter(1), metadata={{op_name="y"}}
  %copy.2 = f32[4000,480]{{1,0}} copy(%x.1)
  %copy.3 = f32[64]{{0}} copy(%y.1)
  %tuple.1 = (s32[], f32[4000,480]{{1,0}}) tuple(%y.1, %copy.2)
  ROOT %while.1 = (s32[], f32[4000,480]{{1,0}}) while(%tuple.1), body=%b, {LOOP}"""


def test_an_argument_that_is_returned_and_was_not_donated_is_copied_for_the_line_that_uses_it() -> None:
    copied = HloState("[copied argument] memory['obs']", HloPlace("sea.py", 3))
    assert states_of(UPDATE) == {"copy.2": copied}
    started = UPDATE.replace("%copy.2 = f32[4000,480]{1,0} copy(", "%copy.2 = (f32[4000,480]{1,0}, u32[]) copy-start(")
    assert states_of(started) == {"copy.2": copied}


@pytest.mark.parametrize(
    "header",
    [
        f"input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}, {LAYOUT}",  # donated, and copied for another reason
        LAYOUT.replace("->(f32[4000,480]", "->(f32[4000]"),  # no result could take its memory
    ],
)
def test_other_copies_of_arguments_are_not_meant(header: str) -> None:
    assert states_of(UPDATE, header=header) == {}
    transposed = UPDATE.replace("%copy.2 = f32[4000,480]{1,0}", "%copy.2 = f32[4000,480]{0,1}")
    assert states_of(transposed) == {}


FROM_REAL = """\
%wrapped.1 (p.1: f32[64,64]) -> c64[64,64] {
  %p.1 = f32[64,64]{1,0} parameter(0)
  ROOT %convert.1 = c64[64,64]{1,0} convert(%p.1)
}
"""
TO_REAL = """\
%fused.1 (p.2: c64[64,64], p.3: f32[]) -> f32[64,64] {
  %p.2 = c64[64,64]{1,0} parameter(0)
  ROOT %real.1 = f32[64,64]{1,0} real(%p.2)
}
"""
FFT = "  %fft.1 = c64[64,64]{1,0} fft(%made), fft_type=FFT, fft_length={64,64}"
IFFT = FFT.replace("fft_type=FFT", "fft_type=IFFT")


@pytest.mark.parametrize(
    ("entry", "fused"),
    [
        (f"  %made = c64[64,64]{{1,0}} fusion(%x), kind=kLoop, calls=%wrapped.1\n{FFT}", FROM_REAL),
        (f"  %x = f32[64,64]{{1,0}} parameter(0)\n  %made = c64[64,64]{{1,0}} convert(%x)\n{FFT}", ""),
        (
            "  %zero = f32[] constant(0)\n  %im = f32[64,64]{1,0} broadcast(%zero)\n"
            f"  %made = c64[64,64]{{1,0}} complex(%x, %im)\n{FFT}",
            "",
        ),
        (f"{IFFT}\n  ROOT %use = f32[64,64]{{1,0}} fusion(%fft.1, %c), kind=kLoop, calls=%fused.1", TO_REAL),
        (f"{IFFT}\n  %bitcast = c64[4096]{{0}} bitcast(%fft.1)\n  ROOT %use = f32[4096]{{0}} real(%bitcast)", ""),
    ],
)
def test_complex_transforms_of_real_values_are_told(entry: str, fused: str) -> None:
    assert states_of(entry, fused)["fft.1"].name == COMPLEX


@pytest.mark.parametrize(
    "entry",
    [
        f"  %made = c64[64,64]{{1,0}} parameter(0)\n{FFT}",
        f"  %y = c64[64,64]{{1,0}} parameter(0)\n  %made = c64[64,64]{{1,0}} convert(%y)\n{FFT}",
        f"{IFFT}\n  %use = f32[64,64]{{1,0}} real(%fft.1)\n  %other = f32[64,64]{{1,0}} imag(%fft.1)",
        f"{IFFT}\n  ROOT %use = (c64[64,64]{{1,0}}) tuple(%fft.1)",
        IFFT,
    ],
)
def test_transforms_of_complex_values_are_not(entry: str) -> None:
    assert states_of(entry) == {}


MATRICES = """\
  %q = f32[8,{n},64]{{2,1,0}} parameter(0)
  %k = f32[8,{n},64]{{2,1,0}} parameter(1)
  %v = f32[8,{n},64]{{2,1,0}} parameter(2)
"""
SCORES = "  %s = f32[8,{n},{n}]{{2,1,0}} dot(%q, %k), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}\n"
CALLED = (
    "  %called = (f32[8,{n},{n}]{{2,1,0}}, s8[64]{{0}}) custom-call(%q, %k), "
    'metadata={{op_name="dot_general"}}, '
    'backend_config={{"lhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"],"epilogue":"DEFAULT"}}\n'
    "  %s = f32[8,{n},{n}]{{2,1,0}} get-tuple-element(%called), index=0\n"
)
OUT = "  ROOT %out = f32[8,{n},64]{{2,1,0}} dot(%s, %v), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}"
TURNED = (
    "  ROOT %out = f32[8,64,{n}]{{2,1,0}} dot(%v, %s), "
    "lhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{2}}"
)


FUSED = """\
%gemm (q: f32[4096,64], k: f32[4096,64]) -> f32[4096,4096] {{
  %q = f32[4096,64]{{1,0}} parameter(0)
  %k = f32[4096,64]{{1,0}} parameter(1)
  {0}%product = f32[4096,4096]{{1,0}} dot(%q, %k), lhs_contracting_dims={{1}}{1}
}}
"""


@pytest.mark.parametrize(
    ("first", "last", "is_told"),
    [("ROOT ", "", True), ("", "\n  ROOT %tanh = f32[4096,4096]{1,0} tanh(%product)", False)],
)
def test_a_product_that_is_fused_with_more_has_no_other_order(first: str, last: str, is_told: bool) -> None:
    entry = (
        "  %v = f32[4096,64]{1,0} parameter(2)\n  %s = f32[4096,4096]{1,0} fusion(%x, %y), kind=kCustom, calls=%gemm\n"
        "  ROOT %out = f32[4096,64]{1,0} dot(%s, %v), lhs_contracting_dims={1}"
    )
    assert [each.name for each in states_of(entry, FUSED.format(first, last)).values()] == [COSTLY_ORDER] * is_told


@pytest.mark.parametrize(
    ("second", "n", "is_told"),
    [
        (OUT, 4096, True),
        (TURNED, 4096, True),
        (OUT.replace("dot(%s", "dot(%other"), 4096, False),
        (OUT, 64, False),
        (OUT.replace("dot(", "add("), 4096, False),
    ],
)
def test_products_of_three_in_the_order_that_takes_more_are_told(second: str, n: int, is_told: bool) -> None:
    for first in (SCORES, CALLED):
        found = states_of((MATRICES + first + second).format(n=n))
        assert [each.name for each in found.values()] == [COSTLY_ORDER] * is_told
    assert states_of((MATRICES + CALLED.replace("DEFAULT", "RELU") + second).format(n=n)) == {}


# einsum("bsij,bskl->bikjl", bra, ket), of which einsum("bik,bikjl->bjl", env, all_pairs) takes one product more
CHAIN = """\
  %bra = f32[64,1024,2]{{2,1,0}} parameter(0)
  %ket = f32[64,2,1024]{{2,1,0}} parameter(1)
  %env = f32[64,1024]{{1,0}} parameter(2)
  %pairs = f32[64,1024,1024]{{2,1,0}} dot(%bra, %ket), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}
  %split = f32[64,32,32,32,32]{{4,3,2,1,0}} bitcast(%pairs)
  %turned = f32[64,32,32,32,32]{{4,3,2,1,0}} transpose(%split), dimensions={order}
  %joined = f32[64,1024,1024]{{2,1,0}} bitcast(%turned)
  ROOT %moved = f32[64,1024]{{1,0}} dot(%env, %joined), lhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}
"""  # noqa: E501


def test_a_product_of_all_pairs_that_a_contraction_follows_has_a_costly_order() -> None:
    found = states_of(CHAIN.format(order="{0,1,3,2,4}"))
    assert {name: each.name for name, each in found.items()} == dict.fromkeys(("pairs", "turned"), COSTLY_ORDER)


def test_matrices_that_belong_to_other_pairs_after_a_product_have_no_other_order() -> None:
    other_pairs = CHAIN.replace(
        "f32[64,32,32,32,32]{{4,3,2,1,0}} transpose", "f32[32,64,32,32,32]{{4,3,2,1,0}} transpose"
    )
    other_pairs = other_pairs.replace(
        "[64,1024,1024]{{2,1,0}} bitcast(%turned)", "[32,2048,1024]{{2,1,0}} bitcast(%turned)"
    )
    assert states_of(other_pairs.format(order="{1,0,2,3,4}")) == {}


SORT = "  %sort.1 = f32[64,1000]{1,0} sort(%x), dimensions={1}, to_apply=%compare"
LARGEST = f'{SORT}, metadata={{op_name="jit(f)/top_k"}}'
FACTOR = '  %cholesky.1 = f32[64,1000]{1,0} custom-call(%x), metadata={op_name="jit(f)/cholesky"}'
PRODUCT = (
    "  %dot.1 = (f32[64,1000]{1,0}, s8[64]{0}) custom-call(%x, %y), "
    'metadata={op_name="jit(f)/dot_general"}, backend_config={"lhs_contracting_dimensions":["1"]}'
)


@pytest.mark.parametrize(
    ("made", "uses", "is_told"),
    [
        (SORT, ["f32[64,10]{1,0} slice(%sort.1), slice={[0:64], [0:10]}"], True),
        (SORT, ["f32[64,500]{1,0} slice(%sort.1), slice={[0:64], [0:500]}"], False),
        (SORT, ["f32[64,10]{1,0} slice(%sort.1)", "f32[64]{0} reduce(%sort.1, %zero), dimensions={1}"], False),
        (PRODUCT, ["f32[64,1000]{1,0} get-tuple-element(%dot.1), index=0", "f32[1,1000]{1,0} slice(%use.0)"], True),
        (PRODUCT, ["f32[64,1000]{1,0} get-tuple-element(%dot.1), index=0", "f32[1,1000]{1,0} negate(%use.0)"], False),
        (SORT, ["f32[64]{0} gather(%sort.1, %places)"], True),
        (FACTOR, ["f32[64]{0} gather(%cholesky.1, %places)"], False),  # the diagonal of a factor
        (SORT, ["f32[64]{0} parameter(0)", "f32[64]{0} gather(%use.0, %sort.1)"], False),  # of all places
        (LARGEST, ["f32[64,10]{1,0} slice(%sort.1), slice={[0:64], [0:10]}"], False),  # no more was asked for
        (SORT, ['f32[64,10]{1,0} slice(%sort.1), metadata={op_name="jit(f)/vmap()/top_k"}'], False),
    ],
)
def test_results_of_which_a_small_part_is_used_are_told(made: str, uses: list[str], is_told: bool) -> None:
    entry = "\n".join([made, *(f"  %use.{at} = {use}" for at, use in enumerate(uses))])
    assert [each.name for each in states_of(entry).values()] == [MOSTLY_UNUSED] * is_told


TRIANGLE = """\
%triangle (r: s32[]) -> f32[512,512] {
  %one = f32[] constant(1)
  %ones = f32[512,512]{1,0} broadcast(%one), dimensions={}
  %zeros = f32[512,512]{1,0} constant(0)
  %rows = s32[512,512]{1,0} iota(), iota_dimension=0
  %columns = s32[512,512]{1,0} iota(), iota_dimension=1
  %below = pred[512,512]{1,0} compare(%rows, %columns), direction=GE
  ROOT %lower = f32[512,512]{1,0} select(%below, %ones, %zeros)
}

%gemm (l: f32[512,512], y: f32[512,64]) -> f32[512,64] {
  %l = f32[512,512]{1,0} parameter(0)
  %y = f32[512,64]{1,0} parameter(1)
  ROOT %product = f32[512,64]{1,0} dot(%l, %y), lhs_contracting_dims={1}
}
"""
ONE_HOT = """\
  %ids = s32[512]{0} parameter(0)
  %table = f32[1000,64]{1,0} parameter(1)
  %each = s32[512,1000]{1,0} broadcast(%ids), dimensions={0}
  %numbers = s32[1000]{0} iota(), iota_dimension=0
  %all = s32[512,1000]{1,0} broadcast(%numbers), dimensions={1}
  %is = pred[512,1000]{1,0} compare(%each, %all), direction=EQ
  %hot = f32[512,1000]{1,0} convert(%is)
  ROOT %rows = f32[512,64]{1,0} dot(%hot, %table), lhs_contracting_dims={1}"""


def test_products_with_zeros_and_ones_are_told() -> None:
    assert {name: each.name for name, each in states_of(ONE_HOT).items()} == {"rows": ZEROS_AND_ONES}
    padded = ONE_HOT.replace("%hot = f32", "%bare = f32").replace(
        "  ROOT", "  %hot = f32[576,1000]{1,0} pad(%bare, %z)\n  ROOT"
    )
    assert {name: each.name for name, each in states_of(padded).items()} == {"rows": ZEROS_AND_ONES}
    masked = ONE_HOT.replace("compare(%each, %all)", "compare(%each, %ids)")
    assert states_of(masked) == {}
    entry = (
        "  %r = s32[] parameter(1)\n  %made = f32[512,512]{1,0} fusion(%r), kind=kLoop, calls=%triangle\n"
        "  ROOT %sums = f32[512,64]{1,0} fusion(%made, %x), kind=kCustom, calls=%gemm"
    )
    assert states_of(entry, TRIANGLE)["sums"].name == ZEROS_AND_ONES
    assert "sums" not in states_of(entry, TRIANGLE.replace("%ones, %zeros)", "%values, %zeros)"))  # part of a matrix


PAIRS = """\
%pairs (a: f32[2048,8], b: f32[2048,8]) -> f32[2048,2048] {
  %a = f32[2048,8]{1,0} parameter(0)
  %b = f32[2048,8]{1,0} parameter(1)
  %rows = f32[2048,2048,8]{2,1,0} broadcast(%a), dimensions={0,2}
  %columns = f32[2048,2048,8]{2,1,0} broadcast(%b), dimensions={1,2}
  %apart = f32[2048,2048,8]{2,1,0} subtract(%rows, %columns)
  %squared = f32[2048,2048,8]{2,1,0} multiply(%apart, %apart)
  ROOT %sum = f32[2048,2048]{1,0} reduce(%squared, %zero), dimensions={2}, to_apply=%add
}
"""


def test_sums_of_squared_differences_of_all_pairs_are_told() -> None:
    entry = "  ROOT %distances = f32[2048,2048]{1,0} fusion(%x, %y), kind=kInput, calls=%pairs"
    assert {name: each.name for name, each in states_of(entry, PAIRS).items()} == {"distances": PAIRWISE}
    scaled = PAIRS.replace("multiply(%apart, %apart)", "multiply(%apart, %columns)")
    assert states_of(entry, scaled) == {}
    assert states_of(entry, PAIRS.replace("2048,8]", "2048,3]")) == {}  # coordinates: a product adds up nothing


BATCHED_LOOP = f"""\
%body (s: f32[64]) -> f32[64] {{
  %s = f32[64]{{0}} parameter(0)
  %next = f32[64]{{0}} sine(%s), metadata={{op_name="jit(f)/vmap()/while/body/sin"}}
  ROOT %kept = f32[64]{{0}} select(%goes, %next, %s), {LOOP}
}}
"""


def test_loops_that_run_until_the_last_of_a_batch_has_ended_are_told() -> None:
    loop = f"  ROOT %while.1 = f32[64]{{0}} while(%x), condition=%c, body=%body, {LOOP}"
    state = HloState(UNTIL_LAST, HloPlace("sea.py", 3))
    assert states_of(loop, BATCHED_LOOP) == dict.fromkeys(("while.1", "next", "kept"), state)
    own = BATCHED_LOOP.replace(f"select(%goes, %next, %s), {LOOP}", "select(%goes, %next, %s)")
    assert states_of(loop, own) == {}


def test_a_loop_whose_result_where_takes_or_not_is_told_where_it_chooses() -> None:
    choice = f"""\
%choice (p: pred[], a: f32[64], b: f32[64]) -> f32[64] {{
  %p = pred[] parameter(0)
  %a = f32[64]{{0}} parameter(1)
  %b = f32[64]{{0}} parameter(2)
  %all = pred[64]{{0}} broadcast(%p), dimensions={{}}
  ROOT %taken = f32[64]{{0}} select(%all, %a, %b), {WHERE}
}}
"""
    loop = (
        "  %flag = pred[] parameter(0)\n  %x = f32[64]{0} parameter(1)\n"
        f"  %while.1 = f32[64]{{0}} while(%x), condition=%c, body=%b, {LOOP}\n"
        "  ROOT %either = f32[64]{0} fusion(%flag, %while.1, %x), kind=kLoop, calls=%choice"
    )
    assert states_of(loop, choice) == {"while.1": HloState(BOTH_BRANCHES, HloPlace("sea.py", 7))}
    elementwise = [each.replace("pred[] parameter", "pred[64] parameter") for each in (loop, choice)]
    assert states_of(*elementwise) == {}


SVD = """\
  %a.1 = f32[8,64,64]{2,1,0} parameter(0)
  %svd.1 = (f32[8,64,64]{2,1,0}, f32[8,64]{1,0}, s32[8]{0}) custom-call(%a.1), metadata={op_name="jit(f)/svd"}
  %values = f32[8,64]{1,0} get-tuple-element(%svd.1), index=1"""


def test_decompositions_whose_vectors_nobody_uses_are_told() -> None:
    assert [each.name for each in states_of(SVD).values()] == [VECTORS_UNUSED]
    vectors = "  %vectors = f32[8,64,64]{2,1,0} get-tuple-element(%svd.1), index=0"
    assert states_of(f"{SVD}\n{vectors}") == {}
    of_both = "  ROOT %both = f32[8,64]{1,0} fusion(%svd.1#0, %svd.1#1), kind=kLoop, calls=%b"
    assert states_of(f"{SVD.rpartition(chr(10))[0]}\n{of_both}") == {}
    of_values = of_both.replace("%svd.1#0, ", "")
    assert [each.name for each in states_of(f"{SVD.rpartition(chr(10))[0]}\n{of_values}").values()] == [VECTORS_UNUSED]


@pytest.mark.parametrize("asked", ["backend_config={mode = 78 : ui8}", "backend_config={compute_uv = false}"])
def test_memory_for_vectors_that_nobody_asks_for_is_no_work(asked: str) -> None:
    assert states_of(SVD.replace('/svd"}', f'/svd"}}, {asked}')) == {}


def test_jax_has_no_call_for_eigenvalues_alone() -> None:
    assert states_of(SVD.replace("svd", "eigh")) == {}


def test_work_that_depends_on_no_argument_is_told() -> None:
    table = "  %table = f32[64,1000]{1,0} fusion(), kind=kLoop, calls=%t\n"
    masked = "  %masked = f32[64,1000]{1,0} fusion(%table), kind=kLoop, calls=%m\n"
    rest = "  %x = f32[64,1000]{1,0} parameter(0)\n  %sum = f32[64,1000]{1,0} fusion(%x, %masked), kind=kLoop, calls=%s"
    assert states_of(table + masked + rest) == dict.fromkeys(("table", "masked"), HloState(CONSTANT, NOWHERE))
    zeros = (
        "%t () -> f32[64,1000] {\n  %zero = f32[] constant(0)\n  ROOT %all = f32[64,1000]{1,0} broadcast(%zero)\n}\n"
    )
    assert states_of(table + rest, zeros) == {}


def test_branches_under_vmap_are_told_at_the_line_that_chooses() -> None:
    row = '  %{0} = f32[64]{{0}} {1}(%x), metadata={{op_name="jit(f)/{2}" {3} source_line={4}}}'
    rows = [
        row.format("sin", "fusion", "vmap(batched_cond)/while/body/sin", FILE, 4),
        row.format("chosen", "select", "vmap(batched_cond)/select_n", FILE, 7),
        row.format("own", "select", "vmap(batched_cond)/jit(_where)/select_n", FILE, 5),
        row.format("mul", "fusion", "vmap(f)/mul", FILE, 9),
    ]
    state = HloState(BOTH_BRANCHES, HloPlace("sea.py", 7))
    assert states_of("\n".join(rows)) == dict.fromkeys(("sin", "own"), state)


def test_copies_that_xla_puts_into_a_loop_belong_to_the_loop() -> None:
    body = "%b (p.1: f32[8]) -> f32[8] {\n  %copy.4 = f32[8]{0} copy(%p.1)\n}\n"
    loop = f"  %while.1 = f32[8]{{0}} while(%x), condition=%c, body=%b, {LOOP}"
    text = f"HloModule jit_f\n\n{body}\nENTRY %main.1 (x: f32[8]) -> f32[8] {{\n{loop}\n}}\n"
    copy = operations_in(text, lambda _: False)["copy.4"]
    assert (copy.op_name, copy.place) == ("jit(f)/while/body", HloPlace("sea.py", 3))
