"""`bragg mcp`, asked by the client of its SDK: the real protocol, on pipes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bragg.cli.verbs import VERBS
from tests.support.recordings import RECORDINGS, SAMPLE

mcp = pytest.importorskip("mcp")

Ask = Callable[..., Awaitable[dict[str, Any]]]
LLAMA = next(path for path in RECORDINGS if "llama" in path.name)
SPILLS = RECORDINGS[0].parent / "kernels" / "h100-register-spills.bragg"
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def copy(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))

x = torch.ones(100)
copy[(1,)](x, torch.empty(128), B=128)
"""


def asked(directory: Path, questions: Callable[[Ask, Any], Awaitable[None]]) -> None:
    """Put questions to a server that was started in a directory."""

    async def talk() -> None:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "bragg", "mcp", "--directory", str(directory)]
        )
        async with mcp.stdio_client(server) as (reading, writing), mcp.ClientSession(reading, writing) as session:
            await session.initialize()

            async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, result
                answer: dict[str, Any] = result.structured_content
                return answer

            await questions(ask, session)

    asyncio.run(asyncio.wait_for(talk(), 300))


def test_a_program_is_recorded_and_its_profile_read(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("print('hello')\nsum(i * i for i in range(3_000_000))\n")

    async def questions(ask: Ask, session: Any) -> None:
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools == {"record", "analyze", "view", "source", "reproduce", "diff", "check"}
        recorded = await ask("record", command=["slow.py"])
        assert (recorded["exit_code"], recorded["output"]) == (0, "hello")
        assert recorded["profiles"] == ["run.bragg"]
        assert {call["tool"] for call in recorded["next"]} <= tools
        shown = await ask("view", file="run.bragg", by_name=True)
        assert "slow.py:2" in shown["text"]

    asked(tmp_path, questions)
    assert (tmp_path / "run.bragg").exists()


def test_a_program_that_does_not_end_is_interrupted_and_its_profile_kept(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("while True:\n    sum(range(1000))\n")

    async def questions(ask: Ask, _: Any) -> None:
        for timeout_s in (3, 30, 200):  # a busy machine needs seconds to begin
            recorded = await ask("record", command=["endless.py"], timeout_s=timeout_s)
            if recorded["profiles"]:
                break
        assert recorded["exit_code"] != 0
        assert "KeyboardInterrupt" in recorded["errors"]
        assert recorded["profiles"] == ["run.bragg"]

    asked(tmp_path, questions)


def test_findings_have_evidence_a_line_and_a_gain(tmp_path: Path) -> None:
    async def questions(ask: Ask, _: Any) -> None:
        (profile,) = (await ask("analyze", file=str(LLAMA)))["analysis"]["profiles"]
        first = profile["findings"][0]
        assert (first["rule"], first["line"], first["gain"]["share"]) == ("planning", 12, pytest.approx(0.75, abs=0.05))
        assert first["evidence"]
        answer = await ask("analyze", file=str(SPILLS))
        kernel = answer["analysis"]["profiles"][0]["findings"][0]["kernel"]
        assert kernel.startswith("product<")
        assert answer["next"][:2] == [
            {"tool": "source", "arguments": {"file": str(SPILLS), "kernel": kernel}},
            {"tool": "reproduce", "arguments": {"file": str(SPILLS), "kernel": kernel}},
        ]
        shown = await ask("source", file=str(SPILLS))
        assert shown["next"][0] == {"tool": "reproduce", "arguments": {"file": str(SPILLS), "kernel": kernel}}
        assert [call["tool"] for call in (await ask("source", file=str(LLAMA)))["next"]] == ["check"]
        program = await ask("source", file=str(SAMPLE), kernel="train_gpt2.py:71")
        assert "loss = model(input_ids=tokens, labels=tokens).loss" in program["text"]
        assert [call["tool"] for call in program["next"]] == ["check"]
        found = (await ask("diff", before=str(LLAMA), after=str(SAMPLE)))["difference"]["findings"]
        assert "planning" in {finding["rule"] for finding in found["gone"]}
        missing = await ask("view", file="nowhere.bragg")
        assert missing["exit_code"] == 6
        assert "nowhere.bragg" in missing["errors"]
        assert missing["next"] == [{"tool": "record", "arguments": {"command": []}}]

    asked(tmp_path, questions)


def test_a_kernel_is_written_with_a_script_that_runs_it_alone(tmp_path: Path) -> None:
    async def questions(ask: Ask, _: Any) -> None:
        written = await ask("reproduce", file=str(SPILLS), kernel="product")
        assert written["exit_code"] == 0
        assert "reproduce.py" in written["text"]
        # The profile has no value of the argument: the caller puts it there.
        script = ["kernel/reproduce.py", "--arg-K", "<i32, 16 divides it>"]
        assert written["next"][0] == {"tool": "record", "arguments": {"command": script}}
        unknown = await ask("reproduce", file=str(SPILLS), kernel="nothing", output="other")
        assert unknown["exit_code"] != 0

    asked(tmp_path, questions)
    assert (tmp_path / "kernel" / "kernel.ttir").exists()


def test_a_wrong_kernel_is_found(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    (tmp_path / "kernel.py").write_text(KERNEL)

    async def questions(ask: Ask, _: Any) -> None:
        checked = await ask("check", command=["kernel.py"])
        (finding,) = checked["check"]["findings"]
        assert (finding["rule"], finding["line"]) == ("out-of-bounds", 7)

    asked(tmp_path, questions)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from bragg.cli.main import main

    assert "mcp" in VERBS
    monkeypatch.setitem(sys.modules, "bragg.mcp_server", None)
    assert main(["mcp"]) == 2
