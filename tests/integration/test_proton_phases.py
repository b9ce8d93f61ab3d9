"""Phases of bragg.proton: their data, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bragg.proton as proton
from bragg.formats.encodings import msgpack
from tests.support.proton_runs import outline, start, tree

pytestmark = pytest.mark.usefixtures("finalized")


def test_each_phase_has_its_data_and_its_file(here: Path) -> None:
    session = start()
    for phase in range(3):
        with proton.scope(f"in {phase}", {"n": phase}):
            pass
        if phase < 2:
            assert proton.data.advance_phase(session) == phase + 1
    assert not proton.data.is_phase_complete(session, 2)
    proton.deactivate(session, flushing=True)
    assert proton.data.is_phase_complete(session, 0)
    assert outline(proton.data.get(session, 1)[0]) == ["ROOT n=0", "  in 1 n=1"]
    assert msgpack.decode(proton.data.get_msgpack(session, 1)) == proton.data.get(session, 1)
    proton.data.clear(session, 0)
    with pytest.raises(IndexError, match=r"Phase 0 has no data\."):
        proton.data.get(session, 0)
    proton.finalize()
    assert {path.name for path in here.iterdir()} == {"x.part_1.hatchet", "x.part_2.hatchet"}
    assert tree("x.part_2.hatchet") == ["ROOT n=0", "  in 2 n=2"]


def test_scope_that_is_open_across_phases_is_in_both() -> None:
    session = start()
    with proton.scope("outer"):
        with proton.scope("before", {"n": 1}):
            pass
        proton.data.advance_phase(session)
        with proton.scope("after", {"n": 2}):
            pass
    proton.finalize()
    assert tree("x.part_0.hatchet") == ["ROOT n=0", "  outer", "    before n=1"]
    assert tree("x.part_1.hatchet") == ["ROOT n=0", "  outer", "    after n=2"]


def test_cleared_phase_that_goes_on_begins_anew() -> None:
    session = start()
    with proton.scope("forgotten"):
        pass
    proton.data.clear(session)
    assert outline(proton.data.get(session)[0]) == ["ROOT"]
    with proton.scope("kept"):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  kept"]


@pytest.mark.parametrize("later", [0, 5])
def test_clearing_up_to_the_current_phase_clears_all(later: int) -> None:
    session = start()
    for name in ("a", "b"):
        with proton.scope(name):
            pass
        phase = proton.data.advance_phase(session)
    proton.data.clear(session, phase=phase + later, clear_up_to_phase=True)
    assert outline(proton.data.get(session, phase)[0]) == ["ROOT"]
    for gone in (0, 1):
        with pytest.raises(IndexError, match="has no data"):
            proton.data.get(session, gone)


@pytest.mark.parametrize("format_name", ["hatchet", "hatchet_msgpack"])
def test_complete_phases_are_written_while_the_program_runs(here: Path, format_name: str) -> None:
    session = start(mode=f"periodic_flushing:format={format_name}")
    for phase in range(4):
        with proton.scope(f"in {phase}", {"n": 1}):
            pass
        if phase < 3:
            proton.data.advance_phase(session)
    proton.finalize(output_format=format_name)
    assert {path.name for path in here.iterdir()} == {f"x.part_{phase}.{format_name}" for phase in range(4)}
    content = (here / f"x.part_3.{format_name}").read_bytes()
    document = json.loads(content) if format_name == "hatchet" else msgpack.decode(content)
    assert outline(document[0]) == ["ROOT n=0", "  in 3 n=1"]


@pytest.mark.parametrize(("with_scope", "n_files"), [((True,), 1), ((True, False, True, False), 4), ((), 1)])
def test_each_phase_leaves_a_file(here: Path, with_scope: tuple[bool, ...], n_files: int) -> None:
    session = start(mode="periodic_flushing")
    for phase, is_entered in enumerate(with_scope):
        if phase:
            proton.data.advance_phase(session)
        if is_entered:
            with proton.scope("in"):
                pass
    proton.finalize()
    names = ["x.hatchet"] if n_files == 1 else [f"x.part_{phase}.hatchet" for phase in range(n_files)]
    assert sorted(path.name for path in here.iterdir()) == names
    for name, is_entered in zip(names, with_scope or (False,), strict=True):
        assert tree(name) == ["ROOT", "  in"][: 1 + is_entered]


def test_trace_has_no_tree_to_get() -> None:
    session = start(data="trace")
    with pytest.raises(RuntimeError, match="Only TreeData is supported"):
        proton.data.get(session)


def test_disabled_session_has_no_data() -> None:
    assert proton.data.get(None) is None
    assert proton.data.advance_phase(None) is None
    assert proton.data.is_phase_complete(None) is False
