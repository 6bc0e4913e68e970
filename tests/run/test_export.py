"""A kernel to take away: the file compiles without ours, and launches what the book launches."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from lib import RawModule
from lib.__main__ import main
from lib.compiler.compiled import compile_source
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import KERNELS, named
from lib.run import device, export
from lib.run.runner import prepare
from tests.kernels.conftest import VARIANTS, legal, slow_but


def made(name, *shape, alpha=1.0, beta=0.0):
    kernel, variant = named(name)
    return export.made(kernel, variant, variant.problem(*shape, alpha, beta), "made by a test")


def code(ptx):
    """PTX without line numbers, names of files and what debuggers read."""
    ptx = re.sub(r"(?ms)^\s*\.section\s+\.debug_\w+.*?^\s*\}", "", ptx)
    return re.sub(r"^\s*\.(?:loc|file)\b.*\n|^//.*\n", "", ptx, flags=re.MULTILINE)


# A version's first variant, and each that has a file of its own; all others of that file are slow.
FLATTENED = [param for param in VARIANTS if param.values[1] in param.values[0].variants[:1]
             or param.values[1].file]
FIRST_OF_FILES = {kernel.file(variant): param for param in reversed(FLATTENED)
                  for kernel, variant in [param.values]}


# Of files that include the same, one is compiled.
FIRST_OF_INCLUDES = {
    tuple(re.findall(r'#include "[^"]*"', file.read_text(encoding="utf-8"))): param
    for file, param in reversed(FIRST_OF_FILES.items())}


@pytest.mark.parametrize("kernel, variant", FIRST_OF_FILES.values())
def test_the_flattened_file_is_whole(kernel, variant):
    text = export.flattened(kernel, variant)
    assert '#include "' not in text and "#pragma once" not in text and "MARK" not in text


@pytest.mark.parametrize("kernel, variant", slow_but(FLATTENED, FIRST_OF_INCLUDES.values()))
def test_the_flattened_file_is_the_same_program(kernel, variant):
    arch = kernel.oldest(variant)
    alone = compile_source(export.flattened(kernel, variant), kernel.expression(variant), arch,
                           filename="alone.cu", dynamic_bytes=variant.shared_bytes, ptx_only=True)
    assert code(alone.ptx) == code(compile_kernel(kernel, variant, arch, ptx_only=True).ptx)


@pytest.mark.parametrize("name, shape", [
    # Nothing but pointers; room for sums; rows that are packed, and tensor maps.
    ("02_shared_tile", (40, 50, 70)), ("09_fp32_limit", (130, 100, 36)),
    ("hopper", (100, 104, 1024)),
    *(pytest.param(*given, marks=pytest.mark.slow) for given in (
        ("06_vectorized", (33, 65, 31)), ("16_cp_async", (100, 99, 101)),
        ("21_clusters", (136, 264, 72)))),
])
def test_the_whole_file_compiles_and_its_kernel_multiplies(name, shape, tmp_path):
    kernel, variant = named(name)
    problem = variant.problem(*legal(variant, *shape), 0.5, -2.0)
    file = tmp_path / "gemm.cu"
    found = export.made(kernel, variant, problem, "a test")
    file.write_text(found.text)
    module = RawModule(path=str(file), name_expressions=[found.instantiation], arch=found.arch)
    A, B, C = problem.inputs(0, np)
    reference = problem.reference(A, B, C)
    ready = prepare(kernel, variant, problem, [(A, B, C)])
    ((step,),) = ready.steps
    launch = step.launch
    module.get_function(found.instantiation)(
        launch.grid, launch.block, step.arguments, shared_mem=launch.shared_bytes)
    assert problem.judge(C, reference).ok


def test_launches_say_what_the_book_launches():
    kernel, variant = named("hopper")
    found = made("hopper", 1000, 999, 1001)
    problem = variant.problem(1000, 999, 1001)
    ready = prepare(kernel, variant, problem, [problem.inputs(0, np)])
    launches = re.findall(
        r"launch\((.+),\n\s+dim3\((.+)\), dim3\((.+)\), (\d+), (true|false), stream", found.text)
    assert [(name, grid, block, int(shared), soon == "true")
            for name, grid, block, shared, soon in launches] == [
        (kernel.expression(step.variant), ", ".join(map(str, step.launch.grid)),
         ", ".join(map(str, step.launch.block)), step.launch.shared_bytes,
         step.launch.programmatic_launch)
        for step in ready.steps[0]
    ]
    # Rows of 1,001 and 999 halves: both are copied into rows of multiples of 16 bytes.
    assert found.text.count("launch(pack<half>,") == 2 and "1001, A, 1008, space.room0, 0);" in \
        found.text.replace("1000, 1001", "1001")
    assert found.text.count("tensor_map(space.room") == 2
    assert "CHECK(cudaFree(room1));" in found.text


def test_room_for_sums_and_counts_is_made():
    found = made("09_fp32_limit", 1024, 1024, 1024)
    assert re.search(r"float\* room0 = room<float>\(\d+ull, 255\);", found.text)
    assert re.search(r"int\* room1 = room<int>\(\d+ull, 0\);", found.text)
    assert "alpha, A, B, beta, C, space.room0, space.room1);" in found.text


def test_rows_that_warps_read_need_no_maps_and_no_copies():
    found = made("hopper", 70, 33, 75)
    assert "any_row<half, float, 16, 64," in found.text
    assert "tensor_map(" not in found.text and "launch(pack<half>," not in found.text


def test_a_shape_without_products_is_refused(capsys):
    assert main(["export", "01_naive", "--shape", "5x7x0"]) == 2
    said = capsys.readouterr().err
    assert "nothing to multiply" in said and said.count("\n") == 1
    assert main(["export", "01_naive", "--shape", "64", "--alpha", "inf"]) == 2
    assert "alpha = inf is no finite float" in capsys.readouterr().err
    assert main(["export", "21_clusters", "--shape", "100x99x101"]) == 2
    assert "multiple" in capsys.readouterr().err


def test_the_command_writes_the_file_or_prints_it(tmp_path, capsys):
    file = tmp_path / "gemm.cu"
    assert main(["export", "02_shared_tile", "--shape", "64", "--out", str(file)]) == 0
    assert f"nvcc -std=c++17 -O3 -arch=sm_75 -o gemm {file} -lcuda" in capsys.readouterr().out
    assert main(["export", "02_shared_tile", "--shape", "64"]) == 0
    assert capsys.readouterr().out == file.read_text()
    assert "Made by: python -m lib export 02_shared_tile --shape 64x64x64" in file.read_text()
    assert main(["export", "02_shared_tile", "--shape", "64", "--json", "--out", str(file)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["instantiation"] == "shared_tile<32>" and document["arch"] == "sm_75"


def test_code_for_hopper_is_built_for_nothing_else():
    # nvcc makes PTX for plain sm_90 besides where it is given -arch=sm_90a, and refuses its wgmma.
    assert export.flag("sm_75") == "-arch=sm_75"
    found = made("19_warp_specialization", 512, 512, 512)
    assert found.target == "-gencode=arch=compute_90a,code=sm_90a"
    assert f"nvcc -std=c++17 -O3 {found.target} -o gemm" in found.text


# All but those whose scales or epilogue an exported file has nothing for, and says so.
EXPORTED = [*(name for name, (_, variant) in zip(KERNELS, map(named, KERNELS), strict=True)
              if not variant.scaling and not variant.epilogue), "hopper/bf16_column"]


def compiler():
    """nvcc's path."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on the PATH")
    return nvcc


def test_what_has_scales_is_refused(capsys):
    assert main(["export", "26_fp8", "--shape", "512"]) == 2
    assert "26_fp8 has scales" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["14_ldmatrix", "16_cp_async"])  # some others take nvcc minutes
def test_nvcc_s_host_compiler_reads_it_too(name, tmp_path):
    """What a target older than the kernel's can't run is not hidden from the pass for the host."""
    found = made(name, *legal(named(name)[1], 512, 512, 512))
    (tmp_path / "gemm.cu").write_text(found.text)
    done = subprocess.run([compiler(), "-std=c++17", "-c", found.target, "-o", str(tmp_path / "o"),
                           str(tmp_path / "gemm.cu")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPORTED)
def test_nvcc_builds_it_and_it_finds_itself_right(name, tmp_path):
    nvcc = compiler()
    kernel, variant = named(name)
    if why := device.why_not(kernel, variant):
        pytest.skip(why)
    for shape in ((512, 512, 512), (1000, 999, 1001), (33, 4096, 4096), (70, 33, 75)):
        found = made(name, *legal(variant, *shape), beta=0.5)
        (tmp_path / "gemm.cu").write_text(found.text)
        # Not -arch=native: where nvcc sees no GPU it takes the oldest, without a word.
        subprocess.run([nvcc, "-std=c++17", "-O3", found.target, "-o", str(tmp_path / "gemm"),
                        str(tmp_path / "gemm.cu"), "-lcuda"], check=True)
        done = subprocess.run([str(tmp_path / "gemm")], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.startswith("right"), done.stdout + done.stderr
