"""Listing many kernels at once gives what listing each gives."""

import pytest

from lib.compiler import cache, listings, sass
from lib.compiler.compiled import compile_source, disassemble_together
from lib.compiler.nvrtc import compile_nvrtc, disassemble
from lib.kernels.build import compile_kernel, prepare
from lib.kernels.catalogue import CATALOGUE

# A loop; code that several blocks share; a division that ptxas calls; TMA and wgmma.
KERNELS = {
    "sm_75": ("02_shared_tile", "09_fp32_limit", "10_wmma"),
    "sm_90a": ("02_shared_tile", "09_fp32_limit", "21_clusters"),
}


@pytest.mark.parametrize("arch", KERNELS)
def test_each_is_what_it_is_alone(arch):
    found = [compile_kernel(CATALOGUE[stem], arch=arch) for stem in KERNELS[arch]]
    together = listings.together([one.cubin for one in found])
    for one, listing in zip(found, together, strict=True):
        alone = sass.parse(disassemble(one.cubin).decode(), one.name)
        assert sass.parse(listing.decode(), one.name) == alone
        assert any(i.target is not None for i in alone)
        assert {i.ptx_line for i in alone} - {None} and {i.cuda_line for i in alone} - {None}


def test_the_same_code_twice_is_listed_twice():
    one = compile_kernel(CATALOGUE["02_shared_tile"], arch="sm_75")
    first, second = listings.together([one.cubin, one.cubin])
    assert sass.parse(first.decode(), one.name) == sass.parse(second.decode(), one.name)


# A file of two kernels, a function that is called, and a table whose address a loader knows.
OTHERS = {
    "two kernels": ("extern \"C\" __global__ void one(int* at) { at[0] = 1; }\n"
                    "extern \"C\" __global__ void two(int* at) { at[0] = 2; }", "two"),
    "a call": ("__device__ __noinline__ int f(int x) { return x * x + x / 7; }\n"
               "extern \"C\" __global__ void calls(int* at) { at[0] = f(at[1]) + f(at[2]); }",
               "calls"),
    "a table": ("__constant__ int table[4];\nextern \"C\" __global__ void reads(const int** at)"
                "{ at[threadIdx.x] = table; }", "reads"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_code_of_another_kind_is_what_it_is_alone(name):
    text, function = OTHERS[name]
    other = compile_nvrtc(text, [], ["-arch=sm_75", "-lineinfo"]).cubin
    tile = compile_kernel(CATALOGUE["02_shared_tile"], arch="sm_75")
    first, second = listings.together([other, tile.cubin])
    assert sass.parse(first.decode(), function) == sass.parse(disassemble(other).decode(), function)
    assert sass.parse(second.decode(), tile.name) == tile.sass


def test_nothing_is_listed_where_there_is_nothing():
    assert listings.together([]) == []


def test_what_is_prepared_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    kernel = CATALOGUE["01_naive"]
    runs = []
    monkeypatch.setattr(listings, "disassemble",
                        lambda cubin: runs.append(cubin) or disassemble(cubin))
    for share in range(2):
        prepare([kernel], share, 2)
    assert len(runs) == 2  # for the oldest architecture, and for the newest
    monkeypatch.setattr("lib.compiler.compiled.disassemble", pytest.fail)
    compile_source.__globals__["_compile_file"].cache_clear()
    for variant in kernel.variants:
        for arch in ("sm_75", "sm_90a"):
            assert compile_kernel(kernel, variant, arch).sass
    disassemble_together([compile_kernel(kernel, arch="sm_75")])
    assert len(runs) == 2
