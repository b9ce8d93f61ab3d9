from __future__ import annotations

from dataclasses import replace

import pytest

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.engine import analysis
from tests.support.stepped import stepped

CALL = "train.py:20@main > jit(f)#operator"


@pytest.mark.parametrize(
    ("knots", "n_found"),
    [("jnp.linspace(0.0, 1.0, 99)", 1), ("jnp.arange(99) / 9", 1), ("jnp.sort(table)", 0), ("x", 0)],
)
def test_a_search_in_knots_that_are_equally_spaced_is_found_where_it_is_written(knots: str, n_found: int) -> None:
    search = f"{CALL} > _interp#operator > _searchsorted_scan_impl#operator > while#operator > select_n#operator"
    profile = stepped(
        f"host 0-10 {CALL}\ngpu 20-320 {search} > fusion#kernel\ngpu 320-400 {search} > copy DtoD#memory", 420
    )
    frames = profile.tree.frames
    for row, name in enumerate(frames.name):
        if name == "select_n":
            frames.file[row], frames.line[row] = "train.py", 3
    text = f"def f(x, table):\n  knots = {knots}\n  return jnp.interp(x, knots, table)\n"
    evidence = Evidence(replace(profile, sources={"train.py": text}))
    (finding,) = analysis(evidence, ["binary-search", "device-copies"]).findings
    assert (finding.rule, finding.line) == ("binary-search" if n_found else "device-copies", 3)
