from __future__ import annotations

from typing import Any

from bragg.views.web.hot_tables import hot_tables
from tests.support.profiles import profile_from_text


def rows(table: dict[str, Any]) -> list[tuple[str, float, float]]:
    return [(row["name"], row["value"], round(row["share"], 3)) for row in table["rows"]]


def test_equal_names_are_one_row_which_leads_to_where_it_took_most() -> None:
    profile = profile_from_text("root\n  a\n    gemm 30us\n  b\n    gemm 50us\n    copy 20us")
    (table,) = hot_tables(profile, host_first=False)
    assert rows(table) == [("gemm", 80_000, 0.8), ("copy", 20_000, 0.2)]
    assert table["about"] == "of 100 us of GPU time in the whole run"
    node = table["rows"][0]["node"]
    assert profile.own("gpu_time")[node] == 50_000


def test_imports_of_a_program_without_a_gpu_are_not_what_took_most() -> None:
    imports = "  <frozen importlib._bootstrap>:1@_find_and_load\n    m.py:1@<module> host=6us"
    (table,) = hot_tables(profile_from_text(f"root\n{imports}\n  a host=3us"), host_first=False)
    assert [row["name"] for row in table["rows"]] == ["a"]
    assert table["about"] == "of 3.00 us of host time without imports"


def test_imports_are_not_what_the_host_did_while_a_gpu_waited_for_it() -> None:
    imports = "  <frozen importlib._bootstrap>:1@_find_and_load\n    m.py:1@<module> host=6us"
    host, gpu = hot_tables(profile_from_text(f"root\n{imports}\n  a host=3us\n    gemm 2us"), host_first=True)
    assert rows(host) == [("a", 3_000, 1.0)]
    assert host["about"] == "of 3.00 us of host time without imports"
    assert gpu["about"] == "of 2.00 us of GPU time in the whole run"


def test_a_program_that_only_imported_shows_what_that_took() -> None:
    text = "root\n  <frozen importlib._bootstrap>:1@_find_and_load host=6us\n  gemm 2us"
    host = hot_tables(profile_from_text(text), host_first=True)[0]
    assert host["about"] == "of 6.00 us of host time in the whole run"


def test_a_profile_without_time_has_no_table() -> None:
    assert hot_tables(profile_from_text("root"), host_first=True) == []
