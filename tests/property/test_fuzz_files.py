"""Damaged files: thousands of them, the same in every run, each read as a valid profile or refused in one line."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest

from bragg import formats
from tests.support.captures import small_capture
from tests.support.mutations import N_FILES, fill, flip_bits, outcomes, reseal_chunk, splice, truncate


def reseal_member(choose: random.Random, content: bytes) -> bytes:
    """One member of an archive with other content, for which its checksum is right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = choose.choice(list(members))
    members[name] = choose.choice((flip_bits, truncate, splice, fill))(choose, members[name])
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w") as archive:
        for member, old in members.items():
            archive.writestr(member, old)
    return changed.getvalue()


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
def test_no_damaged_capture_is_read_wrongly(tmp_path: Path) -> None:
    mutations = (flip_bits, truncate, splice, fill, reseal_chunk)
    found = outcomes(small_capture().content(), mutations, tmp_path / "run.part")
    assert found["read"] > N_FILES // 2
    assert found["NothingRecorded"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("bounded_memory")
def test_no_damaged_profile_is_read_wrongly(tmp_path: Path) -> None:
    path = tmp_path / "run.bragg"
    formats.finish(small_capture().write(tmp_path / "small.part"), path)
    mutations = (flip_bits, truncate, splice, fill, reseal_member)
    found = outcomes(path.read_bytes(), mutations, path)
    assert found["BadFile"] > N_FILES // 4
    assert found["read"] > 0
