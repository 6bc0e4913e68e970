"""The versions on tensor cores: what they ask of the machine, counted from their PTX and SASS."""

from collections import Counter
from functools import cache

import pytest

from lib import ptx
from lib.dispatch.plan import plan
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.records import searches
from lib.run.runner import run
from tests.kernels.conftest import (
    ON_ARCHITECTURES,
    REPRESENTATIVES,
    SPILLS,
    one_in,
    slow_but,
)

FRAGMENT = 16**3  # multiply-adds of a 16×16×16 product
# What marks make spill at most, B per thread: who adds up parts holds all of a tile's sums.
MARKED = {("23_stream_k", "cut"): 64}
FP16 = [
    pytest.param(kernel, variant, id=f"{kernel.stem}-{variant.name}")
    for kernel in CATALOGUE.values() if kernel.group == "FP16"
    for variant in kernel.variants
]


@cache
def emulated(stem, name, M, N, K, *scalars):
    """What a run counted, kept: several tests read the same one."""
    kernel = CATALOGUE[stem]
    variant = kernel.variant(name)
    done = run(kernel, variant.problem(M, N, K, *scalars), variant=variant, backend="emulator")
    assert done.verdict.ok
    return done.launch.trace


def warps(trace, opcode):
    """Warp instructions whose PTX opcode begins so."""
    return sum(count for name, (count, _) in trace.instructions.items() if name.startswith(opcode))


@pytest.mark.parametrize("kernel, variant, arch", one_in(8, [
    param for param in ON_ARCHITECTURES if not param.values[1].file
    and (param.values[0].stem, param.values[1].name) not in SPILLS
]))
def test_marks_make_nothing_spill(kernel, variant, arch):
    used = compile_kernel(kernel, variant, arch, timeline=True).resources
    spilled = MARKED.get((kernel.stem, variant.name), 0)
    assert max(used.spill_store_bytes, used.spill_load_bytes) <= spilled


@pytest.mark.parametrize("kernel, variant", one_in(3, slow_but(
    [param for param in FP16 if param.values[0].min_arch == "sm_75"], REPRESENTATIVES
)))
def test_ptx_for_turing_becomes_code_for_hopper(kernel, variant):
    code = compile_kernel(kernel, variant, "sm_90a", ptx_arch="sm_75")
    assert ".target sm_75" in code.ptx
    assert any(i.base == "HMMA" for i in code.sass)
    assert code.resources.spill_store_bytes == code.resources.stack_bytes == 0


@pytest.mark.parametrize("stem, name", [
    ("10_wmma", "b_by_columns"), ("11_wmma_shared", "unpadded"), ("12_wmma_pipeline", "roles"),
    ("13_wmma_vectorized", "vectors_128x128"), ("14_ldmatrix", "wmma"),
])
def test_a_wmma_is_a_product_of_16(stem, name):
    trace = emulated(stem, name, 128, 128, 64)
    assert warps(trace, "wmma.mma") == 128 * 128 * 64 // FRAGMENT


@pytest.mark.parametrize("arch, expected", [
    ("sm_75", {"HMMA.1688.F32": 4, "HMMA.16816.F32": 0}),
    ("sm_90a", {"HMMA.1688.F32": 0, "HMMA.16816.F32": 2}),
])
def test_one_wmma_in_machine_code(arch, expected):
    """Four products of 16×8×8 on a T4, two of 16×8×16 on an H100."""
    kernel = CATALOGUE["12_wmma_pipeline"]
    found = Counter(i.opcode for i in compile_kernel(kernel, None, arch).inner_loop)
    products = 2 * 2  # fragments of C that a warp has, in one step of K
    assert {opcode: found[opcode] // products for opcode in expected} == expected


@pytest.mark.parametrize("name", ["staged", "at_once", "roles", "epilogue"])
def test_the_epilogue_is_one_multiply_add_for_each_element(name):
    for beta, expected in ((0.0, 0), (-2.0, 128 * 192)):
        trace = emulated("12_wmma_pipeline", name, 128, 192, 64, 0.5, beta)
        assert trace.counters()["ffma_thread_instructions"] == expected


def test_every_thread_has_two_vectors_of_each_tile():
    trace = emulated("14_ldmatrix", "k8", 128, 128, 64)
    loads = [s for s in trace.sites if s.kind == "load" and s.space == "global" and s.requests]
    assert sum(site.lanes for site in loads) == 2 * (2 + 2) * 256
    assert warps(trace, "mma.sync") == 128 * 128 * 64 // (16 * 8 * 8)
    assert warps(trace, "ldmatrix") == 8 * 2 * 2 * (2 + 4)  # warps, steps, halves of one, A and B


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
def test_the_swapped_addresses_fail(arch):
    kernel = CATALOGUE["14_ldmatrix"]
    swapped = kernel.variant("swapped")
    assert swapped not in kernel.variants
    with pytest.raises(ptx.Misaligned, match="ldmatrix"):
        run(kernel, swapped.problem(128, 128, 32), variant=swapped, backend="emulator", arch=arch)


TURING = CATALOGUE["15_turing_limit"]
LIMIT = TURING.variant("tile_128x256")


@pytest.mark.parametrize("arch, ptx_arch", [("sm_75", None), ("sm_90a", "sm_75")])
def test_the_main_loop_is_products_and_little_else(arch, ptx_arch):
    """128 products a warp and step, the fragments that they need, and the next tiles."""
    code = compile_kernel(TURING, LIMIT, arch, ptx_arch=ptx_arch)
    assert code.resources.registers <= 255
    found = Counter(i.base for i in code.inner_loop)
    assert found["HMMA"] == 64 * 64 * 32 // (16 * 8 * 8)
    assert found["LDSM"] == 4 * (2 + 2)  # steps of 8, A and B
    assert (found["LDG"], found["STS"], found["BAR"]) == (6, 6, 1)
    assert len(code.inner_loop) < 1.75 * found["HMMA"]


@pytest.mark.parametrize("name", [
    "tile_128x256", "tile_64x128", "swizzled", "one_buffer", "addresses_xored", "k16",
])
def test_the_swizzle_has_no_conflicts(name):
    variant = TURING.variant(name)
    done = run(TURING, variant.problem(256, 512, 64), variant=variant, backend="emulator",
               exact=True)
    counters = done.launch.trace.counters()
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"]


def test_padding_leaves_conflicts_where_tiles_are_stored():
    """Eight lanes store two padded rows of 64 bytes, which share four banks."""
    variant = TURING.variant("padded")
    done = run(TURING, variant.problem(256, 256, 64), variant=variant, backend="emulator")
    counters = done.launch.trace.counters()
    stores = 4 * 2 * 2 * 8  # blocks, steps, vectors of A of a thread, warps
    extra = counters["shared_wavefronts"] - counters["shared_wavefronts_ideal"]
    assert extra == 4 * stores


@pytest.mark.parametrize("n, name", [
    (1024, "tile_64x128"), (2048, "tile_128x256"), (4096, "tile_128x256"),
])
def test_small_shapes_get_small_tiles(n, name):
    problem = LIMIT.problem(n, n, n)
    chosen = plan(TURING, LIMIT, problem, searches=searches.of(TURING, LIMIT))
    assert chosen.variant is TURING.variant(name)
    assert chosen.reason.startswith(f"{name}: fastest at {n}×{n}×{n}")
    assert plan(TURING, LIMIT, problem, exact=True).variant is LIMIT
    problem = LIMIT.problem(n, n - 1, n)
    odd = plan(TURING, LIMIT, problem, searches=searches.of(TURING, LIMIT))
    assert odd.variant.schedule.vec == 1 and odd.variant.name == name


def memory_order(name, arch="sm_90a"):
    """The accesses and products of an instantiation's main loop, in the order of its SASS."""
    kernel = CATALOGUE["14_ldmatrix"]
    loop = compile_kernel(kernel, kernel.variant(name), arch).inner_loop
    return [one.base for one in loop if one.base in ("LDG", "STS", "LDSM", "HMMA", "BAR")]


def loads_ahead(bases):
    """Global loads before the loop's first shared store: those behind it wait for a load."""
    return bases[:bases.index("STS")].count("LDG")


@pytest.mark.parametrize("form", ["wmma", "k16"])
def test_a_load_stands_where_its_pair_says(form):
    first, late = (memory_order(f"{form}_{where}") for where in ("loads_first", "load_late"))
    assert loads_ahead(first) == 4 and loads_ahead(late) == 3
    assert Counter(first) == Counter(late)
    if form == "wmma":  # nothing else moves: the pair is of the load alone
        start = first.index("BAR")
        assert first[start:] == late[start:]
