"""The tools for assistants, called as functions and by the protocol's own client."""

import asyncio
import json
import sys

import pytest

from lib.compiler import mcp_server
from lib.paths import ROOT
from lib.show.zoo import specimens

RACING = next(one for one in specimens() if one.name == "missing_barrier")
WORDS = ["x=int32[64]:arange", "y=int32[64]"]


def test_a_kernel_is_compiled_run_and_explained():
    source = RACING.path.read_text(encoding="utf-8")
    made = mcp_server.compile(source)
    assert made["kernels"][0]["plain"] == "missing_barrier"
    assert made["kernels"][0]["parameters"] == [".u64", ".u64"] and ".entry" in made["ptx"]
    ran = mcp_server.run(source, WORDS, [1], [64])
    assert [one["kind"] for one in ran["hazards"]] == ["race"] and ran["lines"]
    assert mcp_server.run(made["ptx"], WORDS, [1], [64])["hazards"]
    one = mcp_server.explain(source, 14, WORDS, [1], [64])
    assert one["text"] == "y[threadIdx.x] = s[63 - threadIdx.x];"
    assert "__syncthreads() between" in one["hazards"][0]["advice"]
    assert {access["kind"] for access in one["accesses"]} == {"load", "store"}
    out = mcp_server.run(source, WORDS, [4], [128])
    assert out["ended"] == "stopped" and out["errors"][0]["kind"] == "OutOfBounds"
    with pytest.raises(ValueError, match="no file"):
        mcp_server.run(source, ["@/etc/passwd", "null"], [1], [64])


def test_the_protocol_s_client_calls_the_tools_over_stdio():
    pytest.importorskip("mcp", reason="the protocol's package is not installed: pip install mcp")
    from mcp import Client, StdioServerParameters

    async def ask():
        how = StdioServerParameters(command=sys.executable, cwd=str(ROOT), env={
            "PYTHONPATH": ":".join(sys.path)}, args=["-m", "lib.compiler.mcp_server"])
        async with Client(how) as client:
            tools = await client.list_tools()
            answer = await client.call_tool("run", {
                "source": RACING.path.read_text(encoding="utf-8"), "args": WORDS, "grid": [1],
                "block": [64]})
            return tools, answer

    tools, answer = asyncio.run(ask())
    assert {tool.name for tool in tools.tools} == {"compile", "run", "explain"}
    assert json.loads(answer.content[0].text)["hazards"][0]["kind"] == "race"
