"""Correct kernels give what NumPy gives, and no checker that is on by default has anything to say of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import bragg.debug
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.flow.jitted import python_function
from bragg.debug.flow.program import Program

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

from tests.kernels.correct import CORRECT
from tests.kernels.planted import PLANTED


@pytest.mark.parametrize("name", CORRECT)
def test_kernel_is_right_and_has_no_findings(name: str) -> None:
    with bragg.debug.check() as report:
        pairs = CORRECT[name]()
    assert report.launches > 0
    assert len(report) == 0, "\n".join(report.lines())
    assert not report.verdicts.notes
    for actual, expected in pairs:
        np.testing.assert_allclose(np.asarray(actual, "f8"), np.asarray(expected, "f8"), rtol=2e-3, atol=2e-3)


def test_table_is_large() -> None:
    assert len(CORRECT) >= 60


def test_programs_that_wait_for_each_other_in_many_ways() -> None:
    from tests.kernels.correct import sharing, synchronising
    from tests.kernels.planted import races
    from tests.kernels.planted import sharing as wrong_sharing

    modules = [function.__module__ for function in CORRECT.values()]
    assert modules.count(synchronising.__name__) + modules.count(sharing.__name__) >= 35
    twins = [case.file for case in PLANTED.values() if case.file in (races.__file__, wrong_sharing.__file__)]
    assert len(twins) >= 45


def test_most_kernels_are_proven_whatever_the_data_holds() -> None:
    from tests.kernels.correct import sharing, synchronising

    # Locks and flags are read from memory by their nature.
    modules = {sys.modules[launch.__module__] for launch in CORRECT.values()} - {sharing, synchronising}
    kernels = {one for module in modules for name, one in vars(module).items() if name.endswith("_kernel")}
    assert len(kernels) >= 100
    proven = [dependence_of(Program.of(python_function(one), one)) is None for one in kernels]
    assert sum(proven) >= 0.6 * len(kernels)
