"""An MCP server over stdio, with which an assistant compiles, runs and explains kernels: no GPU.

``warplens-mcp`` of the package with its extra ``mcp``; in this repository
``python -m lib.compiler.mcp_server``. It runs with the rights of who starts it, like a compiler.
"""

from __future__ import annotations

from typing import Any

from lib import ptx
from lib.compiler import arguments, link
from lib.compiler.raw_module import RawModule, expressions, open_kernel, stopped_document
from lib.compiler.signature import plain_name
from lib.ptx.report import document

MAX_TURNS = 1 << 18  # of a batch of blocks, after which a run is stopped as endless


def compile(source: str, kernel: str = "", arch: str = "sm_80") -> dict[str, Any]:
    """Compile CUDA C++ to PTX with NVRTC; a template is named with its arguments, `gemm<128>`."""
    module = RawModule(code=source, arch=arch, name_expressions=expressions(kernel))
    return {"ptx": link.without_folders(module.ptx), "warnings": module.warnings, "kernels": [
        {"name": name, "plain": plain_name(name),
         "parameters": [f".{one.type}" if one.count == 1 else f"{one.nbytes} bytes"
                        for one in module.get_function(name).function.entry.parameters]}
        for name in module.kernels()]}


def run(
    source: str, args: list[str], grid: list[int], block: list[int], kernel: str = "",
    arch: str = "sm_80", cluster: list[int] | None = None, shared: int = 0,
    schedule: str = "lowest", landing: str = "early", seed: int = 0,
) -> dict[str, Any]:
    """Run a kernel of CUDA C++ or PTX without a GPU, and report races, errors, counts by line.

    `args` are words, one per parameter: int:128, float32:1.5, 'A=float32[64,64]:uniform' (or zeros,
    ones, nan, normal, arange, integers), null, 'map[64,64]:A:128' for a tensor map.
    """
    _, found = open_kernel(kernel, code=source, arch=arch)
    if any("@" in word for word in args):
        raise ValueError("no file is read for an argument: describe the array in words")
    values = [one.value for one in arguments.parse(args, seed, option="args")]
    extra: dict[str, Any] = {"cluster": tuple(cluster)} if cluster else {}
    try:
        return document(found(tuple(grid), tuple(block), values, shared, races=True, seed=seed,
                              schedule=schedule, landing=landing, turns=MAX_TURNS, **extra))
    except ptx.LaunchError:
        raise
    except ptx.Error as error:
        return stopped_document(found.name, error)


def explain(
    source: str, line: int, args: list[str], grid: list[int], block: list[int], kernel: str = "",
    arch: str = "sm_80", shared: int = 0,
) -> dict[str, Any]:
    """Run as `run` does, and tell of one line of the source: its accesses and its findings."""
    whole = run(source, args, grid, block, kernel, arch, None, shared)
    place = f"module.cu:{line}"
    text = source.split("\n")[line - 1].strip() if 0 < line <= source.count("\n") + 1 else ""
    return {
        "line": place, "text": text, "ended": whole["ended"], "errors": whole["errors"],
        "hazards": [one for one in whole["hazards"] if place in (one["first"], one["second"])],
        "accesses": [one for one in whole.get("lines", []) if one["place"] == place],
    }


def server() -> Any:
    """The server with its three tools.

    Raises ImportError where the protocol's package is missing.
    """
    from mcp.server import MCPServer

    made = MCPServer("warplens", instructions="Runs CUDA kernels without a GPU and finds races, "
                     "missing fences, errors and wasteful accesses.")
    for tool in (compile, run, explain):
        made.tool()(tool)
    return made


def main() -> int:
    """Serve on stdin and stdout until the client ends."""
    server().run()
    return 0


if __name__ == "__main__":
    main()
