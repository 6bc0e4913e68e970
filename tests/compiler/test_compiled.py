"""Compiling without a GPU, and what is read from the machine code."""

import collections
import re
from functools import partial
from pathlib import Path

import pytest

from lib.compiler import cache, sass, toolkit
from lib.compiler import compiled as compiler
from lib.compiler import nvrtc as runs_nvrtc
from lib.compiler.compiled import compile_file, compile_source
from lib.compiler.fingerprint import without_marks
from lib.compiler.nvrtc import CompileError, assemble
from lib.gpus import ARCHITECTURES
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from tests.kernels.conftest import (
    ON_ARCHITECTURES,
    REPRESENTATIVES,
    SPILLS,
    VARIANTS,
    one_in,
    slow_but,
)

TILE = CATALOGUE["02_shared_tile"]
# The smallest of each file, and the rest slow.
MARKED = slow_but(VARIANTS, {
    kernel.file(variant): param for param in reversed(REPRESENTATIVES)
    for kernel, variant in [param.values]}.values())


@pytest.mark.parametrize("kernel, variant, arch", one_in(4, ON_ARCHITECTURES))
def test_every_kernel_compiles_for_every_architecture_from_its_oldest_on(kernel, variant, arch):
    compiled = compile_kernel(kernel, variant, arch)
    assert f".target {arch}" in compiled.ptx
    assert compiled.cubin.startswith(b"\x7fELF")
    limit = SPILLS.get((kernel.stem, variant.name), 0)
    for changed in ({}, variant.vectors.narrow or {}):
        used = compile_kernel(kernel, variant.scheduled(**changed), arch).resources
        assert max(used.spill_store_bytes, used.spill_load_bytes, used.stack_bytes) <= (
            0 if changed else limit)
        # A block of the kernel must fit an SM.
        assert 0 < used.registers <= 255 and used.registers * variant.threads <= 65536
        assert used.shared_bytes <= 227 * 1024


def test_nvrtc_is_loaded_before_cupy_is_asked_for_it(monkeypatch):
    """CuPy 13 does not find a wheel's by itself."""
    from cupy.cuda import nvrtc

    done = []
    for module in (toolkit, runs_nvrtc):
        monkeypatch.setattr(module, "load_nvrtc", lambda: done.append("loaded"))
    monkeypatch.setattr(nvrtc, "getVersion", lambda: done.append("asked"))
    monkeypatch.setattr(nvrtc, "createProgram", lambda *rest: 1 / 0)
    toolkit.nvrtc_version()
    assert done == ["loaded", "asked"]
    with pytest.raises(ZeroDivisionError):
        runs_nvrtc.compile_nvrtc("", [], [])
    assert done == ["loaded", "asked", "loaded"]


def test_a_missing_nvrtc_says_what_to_install(monkeypatch):
    import cuda.pathfinder

    def missing(name):
        raise cuda.pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(cuda.pathfinder, "load_nvidia_dynamic_lib", missing)
    toolkit.load_nvrtc.cache_clear()
    with pytest.raises(toolkit.ToolMissing, match="NVRTC is missing: run pip install"):
        toolkit.load_nvrtc()


def test_a_pathfinder_that_knows_no_ptxas_keeps_none_from_being_found(monkeypatch):
    """As on Colab, where 1.6 raises an exception of a class that it doesn't show."""
    import cuda.pathfinder

    class UnsupportedBinaryError(Exception):
        pass

    def unknown(name):
        raise UnsupportedBinaryError(name)

    usual = toolkit.find_tool("ptxas")
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_binary_utility", unknown)
    assert Path(toolkit.find_tool("ptxas")).samefile(usual)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(toolkit.ToolMissing, match="no_such_tool is missing: run pip install"):
        toolkit.find_tool("no_such_tool")
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_binary_utility", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        toolkit.find_tool("ptxas")


def test_an_architecture_older_than_the_kernel_s_is_refused():
    hopper, turing = CATALOGUE["17_wgmma"], CATALOGUE["01_naive"]
    with pytest.raises(ValueError, match="runs on sm_90a and later, not on sm_80"):
        compile_kernel(hopper, arch="sm_80")
    with pytest.raises(ValueError, match="not on sm_75"):
        compile_kernel(hopper, arch="sm_90a", ptx_arch="sm_75")
    assert compile_kernel(hopper).arch == "sm_90a" and compile_kernel(turing).arch == "sm_75"


@pytest.mark.parametrize("kernel, variant", MARKED)
def test_marks_compile_to_nothing_unless_asked_for(kernel, variant):
    """The PTX is that of a file from which every mark was deleted, its line numbers apart.

    And apart from its names for debuggers, which hold a hash of the source.
    """
    text = kernel.file(variant).read_text()
    bare = without_marks(text)
    assert "MARK" in text and "MARK" not in bare and "TIMELINE" not in bare
    def code(source):
        ptx = compile_kernel(kernel, variant, source=source, ptx_only=True).ptx
        ptx = re.sub(r"(?ms)^\s*\.section\s+\.debug_str.*?^\s*\}", "", ptx)
        return re.sub(r"^\s*\.(?:loc|file)\b.*\n|^//.*\n", "", ptx, flags=re.MULTILINE)

    assert code(text) == code(bare)
    marked = compile_kernel(kernel, variant, timeline=True, ptx_only=True).ptx
    assert "%clock" in marked and "%clock" not in code(text)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_marked_wait_ends_after_the_values_have_arrived(arch):
    """In program order: loads, WAIT's clock, a use of both values, COMPUTE's clock."""
    loop = compile_kernel(TILE, None, arch, timeline=True).inner_loop
    order = [i.base if i.base != "LOP3" else ("USE" if "0x3c" in i.text else "-") for i in loop]
    marked = [b for b in order if b in ("LDG", "CS2R", "USE", "STS", "BAR", "LDS", "FFMA")]
    shape = "".join({"LDG": "g", "CS2R": "c", "USE": "u", "STS": "s", "BAR": "b", "LDS": "l",
                     "FFMA": "f"}[b] for b in marked)
    assert re.fullmatch(r"cg+cu+cs+cbc[lf]+cb", shape), shape


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_inner_loop_is_the_one_that_multiplies(arch):
    mix = collections.Counter(i.base for i in compile_kernel(TILE, None, arch).inner_loop)
    assert mix["FFMA"] == 32
    assert mix["BAR"] == 2 and mix["STS"] == 2 and mix["LDG"] == 2
    # 64 scalar loads of the PTX: B's 32 stay, A's 32 became 8 wide ones.
    assert mix["LDS"] == 40


def test_instructions_carry_both_lines():
    source = TILE.source.read_text().splitlines()
    for i in compile_kernel(TILE).sass:
        if i.base == "BAR":
            assert "__syncthreads" in source[i.cuda_line - 1]
            assert "bar.sync" in compile_kernel(TILE).ptx.splitlines()[i.ptx_line - 1]


def test_a_compile_error_shows_the_message_and_our_line():
    text = "template <int T>\n__global__ void f(float* x)\n{\n    x[0] = undeclared;\n}\n"
    with pytest.raises(CompileError) as error:
        compile_source(text, "f<1>", "sm_75", filename="broken.cu")
    assert "undeclared" in str(error.value)
    assert "broken.cu:4: x[0] = undeclared;" in str(error.value)


def test_what_was_compiled_before_is_kept_until_anything_of_it_changes(tmp_path, monkeypatch):
    runs = []

    def nvrtc(*arguments):
        runs.append(arguments)
        return compile_nvrtc(*arguments)

    compile_nvrtc = compiler.compile_nvrtc
    monkeypatch.setattr(compiler, "compile_nvrtc", nvrtc)
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "kept")
    header = tmp_path / "include" / "factor.cuh"
    header.parent.mkdir()
    header.write_text("#define FACTOR 3\n")
    text = ('#include "factor.cuh"\n'
            "template <int T> __global__ void f(int* x) { x[0] *= T * FACTOR; }\n")
    compiled = partial(compile_source, include=header.parent)
    first = compiled(text, "f<1>", "sm_75")
    again = compiled(text, "f<1>", "sm_75")
    assert again == first and again.sass == first.sass and len(runs) == 1
    header.write_text("#define FACTOR 5\n")
    changed = compiled(text, "f<1>", "sm_75")
    assert "5;" in changed.ptx and "5;" not in first.ptx
    variations = [
        compiled(text + " ", "f<1>", "sm_75"), compiled(text, "f<2>", "sm_75"),
        compiled(text, "f<1>", "sm_80"), compiled(text, "f<1>", "sm_75", ("-DX",)),
        compiled(text, "f<1>", "sm_75", filename="other.cu"),
    ]
    assert len(runs) == 2 + len(variations)
    assert "other.cu" in variations[-1].ptx
    monkeypatch.setattr(compiler, "toolkit_identity", lambda: "another toolkit")
    compiled(text, "f<1>", "sm_75")
    assert len(runs) == 3 + len(variations)


def test_a_file_that_was_edited_is_compiled_anew(tmp_path):
    source = tmp_path / "f.cu"
    source.write_text("template <int T> __global__ void f(int* x) { x[0] = T + 3; }\n")
    first = compile_file(source, "f<1>", "sm_75")
    assert compile_file(source, "f<1>", "sm_75") is first
    source.write_text("template <int T> __global__ void f(int* x) { x[0] = T + 12345; }\n")
    assert "12346" in compile_file(source, "f<1>", "sm_75").ptx and "12346" not in first.ptx


def test_what_ptxas_refuses_is_said_without_its_report():
    text = ("template <int T> __global__ void f(int* x)\n"
            "{ __shared__ int s[20000]; s[x[0]] = T; x[1] = s[x[2]]; }\n")
    with pytest.raises(CompileError) as error:
        compile_source(text, "f<1>", "sm_75")
    assert "too much shared data" in str(error.value) and "ptxas info" not in str(error.value)


def test_ptxas_assembles_ptx_for_a_later_gpu():
    compiled = compile_kernel(TILE, None, "sm_75")
    cubin, log = assemble(compiled.ptx, "sm_90")
    assert cubin.startswith(b"\x7fELF") and "Used " in log
    with pytest.raises(CompileError, match="ptxas"):
        assemble(compiled.ptx.replace("fma.rn.f32", "fmma.rn.f32"), "sm_75")


@pytest.mark.parametrize(
    "opcode, nbytes",
    [("LDS", 4), ("LDS.U.128", 16), ("STS.64", 8), ("LDG.E.U16", 2), ("LDG.E.U8.CONSTANT", 1)],
)
def test_widths_of_machine_accesses(opcode, nbytes):
    assert sass.access_bytes(opcode) == nbytes


def test_a_listing_without_the_function_is_refused():
    with pytest.raises(ValueError, match="no function"):
        sass.parse("", "missing")
