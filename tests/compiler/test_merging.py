"""PTX's accesses and the machine's: the same sites, for every kernel and architecture."""

import re
from collections import Counter

import numpy as np
import pytest

from lib import ptx
from lib.compiler import merging as ties
from lib.compiler.compiled import compile_source
from lib.compiler.merging import statements
from lib.compiler.sass import Instruction
from lib.kernels.build import compile_kernel
from lib.kernels.catalogue import CATALOGUE
from lib.ptx.core.analysis import unused_lines
from lib.run.runner import run
from tests.kernels.conftest import (
    OLDEST_AND_NEWEST,
    ON_ARCHITECTURES,
    architectures,
    legal,
    one_in,
)
from tests.tables import cases

EVERY = [
    *one_in(
        3, [param for param in ON_ARCHITECTURES if param.values[1] in param.values[0].variants]),
    *(pytest.param(kernel, variant, arch, id=f"{kernel.stem}-{variant.name}-{arch}",
                   marks=pytest.mark.slow)
      for kernel in CATALOGUE.values() for variant in kernel.variants if variant.candidates
      for arch in architectures(kernel, variant)),
]

# The machine instruction of each kind of site; a site of ldmatrix or wmma.load has 16 bytes a row.
KINDS = {
    ("load", "shared"): "LDS", ("store", "shared"): "STS", ("load", "global"): "LDG",
    ("store", "global"): "STG", ("ldmatrix", "shared"): "LDSM", ("stmatrix", "shared"): "STSM",
    ("copy", "shared"): "LDGSTS",
}


def in_loops(text):
    """PTX lines between a label and a branch back to it."""
    labels, inside = {}, set()
    for number, row in enumerate(text.splitlines(), 1):
        if label := re.match(r"\s*([$\w]+):", row):
            labels[label[1]] = number
        elif (jump := re.search(r"\bbra(?:\.uni)?\s+([$\w]+);", row)) and jump[1] in labels:
            inside.update(range(labels[jump[1]], number))
    return inside


def width(machine, nbytes):
    """Bytes a lane; of matrices' rows neither PTX nor nvdisasm tells any."""
    return 0 if machine in ("LDSM", "STSM") else nbytes


def machine_sites(compiled):
    """PTX line, opcode and width of each access in the listing."""
    return [
        (i.ptx_line, i.base, width(i.base, i.access_bytes))
        for i in ties.machine_accesses(compiled.sass)
    ]


@pytest.mark.parametrize("kernel, variant, arch", EVERY)
def test_the_merged_sites_are_those_of_the_listing(kernel, variant, arch):
    """The census: as many static LDS, STS, LDG, STG, … of each width, line by line."""
    compiled = compile_kernel(kernel, variant, arch)
    machine = machine_sites(compiled)
    # ptxas writes WMMA, and the book that tensor memory's allocator keeps, as code of its own.
    expanded = {
        number for number, row in enumerate(compiled.ptx.splitlines(), 1)
        if re.search(r"wmma\.|tcgen05\.(de|relinquish_)?alloc", row)
    }
    sites = [
        (line, access.machine, (compiled.merge.get(line) or (0, access.nbytes))[1])
        for line, access in ties.accesses(statements(compiled.ptx, compiled.name)).items()
        if compiled.merge.get(line, ()) is not None
    ]
    assert sorted({m for m in machine if m[0] not in expanded}) == sorted(sites)
    # An instruction that stands there more than once is that of a loop which ptxas unrolled.
    copied = {line for (line, *_), copies in Counter(machine).items() if copies > 1}
    assert copied <= in_loops(compiled.ptx) | expanded
    # And what ran in the emulator, its wmma expanded, is what stands there. (A variant may leave a
    # small problem to another one.)
    done = run(kernel, variant.problem(*legal(variant, 40, 56, 72), 0.5, -2.0),
               variant=variant, backend="emulator", arch=arch)
    executed = set()
    for site in done.launch.trace.sites:
        base = KINDS.get((site.kind, site.space))
        if "shared::cluster" in site.opcode:
            base = {"load": "LD", "store": "ST"}.get(site.kind)
        if base:  # atomics are neither; of a copy it is the half in shared memory
            executed.add((site.line, base, width(base, site.bytes_per_lane)))
    assert executed <= set(machine_sites(done.compiled))


def traced(text, arch, threads, *args):
    """Compile and run a kernel; returns what was compiled, and the counters."""
    compiled = compile_source(text, "f<0>", arch)
    function = ptx.Module(compiled.ptx).get_function(compiled.name)
    return compiled, function(1, threads, args, merge=compiled.merge).trace.counters()


def kernel_text(body):
    return f"""
template <int>
__global__ void f(const float* A, float* C)
{{
    const int i = threadIdx.x;
    float a[4];
    for (int j = 0; j < 4; ++j) a[j] = A[i + 32 * j];
    {body}
}}
"""


@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
def test_global_stores_that_ptxas_merges_count_once(arch):
    """Two stores of 64 bits behind a load that proves their address a multiple of 16 bytes."""
    text = kernel_text("""
    const float4 o = *reinterpret_cast<float4*>(C + 4 * i);
    asm volatile("st.global.v2.f32 [%0], {%1, %2};\\n\\tst.global.v2.f32 [%0+8], {%3, %4};"
                 ::"l"(C + 4 * i), "f"(a[0] + o.x), "f"(a[1] + o.y), "f"(a[2] + o.z),
                   "f"(a[3] + o.w));
    """)
    A, C = np.arange(256, dtype=np.float32), np.ones(128, np.float32)
    compiled, counters = traced(text, arch, 32, A, C)
    assert [i.access_bytes for i in compiled.sass if i.base == "STG"] == [16]
    assert sorted(compiled.merge.values(), key=str) == [(0, 16), None]
    assert (counters["global_store_requests"], counters["global_store_sectors"]) == (1, 16)
    assert counters["global_load_requests"] == 5
    assert C[1] == A[32] + 1


def entry(body):
    """An entry whose body begins in the third line."""
    return (".entry k() {\n.reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<99>; .reg .b16 %rs<9>;"
            f" .reg .pred %p<9>; .shared .b32 s; .shared .b32 t;\n{body}\n}}")


def tied(body, *machine, used=tuple(f"%f{i}" for i in range(9))):
    """What becomes of the PTX lines of a body; `machine` names (line, opcode), from 1.

    Registers of `used` are used behind it.
    """
    text = entry(f"{body}\ncall use, ({', '.join(used)});")
    instructions = [Instruction(16 * n, opcode, opcode, line + 2)
                    for n, (line, opcode) in enumerate(machine)]
    return {line - 2: to for line, to in ties.merged_accesses(text, instructions, "k").items()}


SCALARS = "\n".join(f"ld.shared.f32 %f{i}, [%r1+{4 * i}];" for i in range(8))


@pytest.mark.parametrize("leaders", [(1, 5), (2, 8), (4, 6)])
def test_two_wide_accesses_share_out_the_narrow_ones(leaders):
    found = tied(SCALARS, *((line, "LDS.128") for line in leaders))
    first, second = leaders
    assert found.pop(first) == (0, 16) and found.pop(second) == (16, 16)
    assert len(found) == 6 and set(found.values()) == {None}


def test_wide_accesses_need_not_begin_at_a_multiple_of_their_width_from_the_register():
    found = tied(SCALARS, (1, "LDS"), (2, "LDS.128"), (8, "LDS"), (6, "LDS.64"))
    assert found[2] == (4, 16) and found[6] == (20, 8)
    assert [line for line, to in found.items() if to is None] == [3, 4, 5, 7]


def test_wide_accesses_may_read_the_gap_between_rows():
    """Rows of nine floats, of which the ninth is never read: ptxas reads over it."""
    rows = "\n".join(
        f"ld.shared.f32 %f{i}, [%r1+{4 * (9 * (i // 8) + i % 8)}];" for i in range(16)
    )
    # The third begins in the gap, the last reads past the end.
    leaders = {1: (0, 16), 6: (16, 16), 11: (32, 16), 12: (48, 16), 16: (64, 16)}
    found = tied(rows, *((line, "LDS.128") for line in leaders))
    assert {line: to for line, to in found.items() if to} == leaders
    assert sum(to is None for to in found.values()) == 16 - len(leaders)


def test_addresses_are_compared_through_the_constants_that_are_added():
    body = "add.s32 %r2, %r0, 8;\nld.shared.f32 %f1, [%r2];\nld.shared.f32 %f2, [%r0+12];"
    assert tied("mov.u32 %r0, s;\n" + body, (3, "LDS.64")) == {3: (0, 8), 4: None}
    assert tied("mov.u32 %r0, s;\n" + body, (4, "LDS.64")) == {4: (8, 8), 3: None}


@pytest.mark.parametrize("again", ["add.s32 %r2, %r0, 8;", "mov.u32 %r0, t;"])
def test_a_register_that_is_written_twice_is_no_other_one_plus_a_constant(again):
    """Else the two loads would be of neighbours, and part of the one wide load."""
    body = (f"mov.u32 %r0, s;\nadd.s32 %r2, %r0, 8;\n{again}\n"
            "ld.shared.f32 %f1, [%r2];\nld.shared.f32 %f2, [%r0+12];")
    assert tied(body, (4, "LDS.64")) == {4: (0, 8)}


def test_a_load_that_is_there_already_counts_nothing():
    body = "ld.shared.f32 %f1, [%r1];\nld.shared.f32 %f2, [%r1];"
    assert tied(body, (1, "LDS")) == {2: None}


@pytest.mark.parametrize("load", [
    "ld.shared.f32 %f2, [%r1+64];",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%f2, %f3}, [%r1];",
])
def test_a_load_that_nothing_uses_counts_nothing_where_ptxas_left_it_out(load):
    machine = "LDSM" if "matrix" in load else "LDS"
    body = f"ld.shared.f32 %f1, [%r1];\n{load}\nadd.f32 %f4, %f2, %f2;\nst.global.f32 [%rd1], "
    assert tied(body + "%f1;", (1, "LDS"), (4, "STG.E"), used=()) == {2: None}
    assert tied(body + "%f1;", (1, "LDS"), (2, machine), (4, "STG.E"), used=()) == {}
    assert tied(body + "%f4;", (1, "LDS"), (4, "STG.E"), used=()) == {}  # moved elsewhere
    volatile = body.replace("ld.shared", "ld.volatile.shared") + "%f1;"
    assert tied(volatile, (1, "LDS"), (4, "STG.E"), used=()) == (
        {2: None} if machine == "LDSM" else {})


def test_what_a_branch_or_a_second_statement_of_a_line_uses_is_used():
    body = "\n".join([
        "ld.shared.u32 %r1, [%r9];", "setp.ne.u32 %p1, %r1, 0;", "@%p1 bra END;",
        "ld.shared.u32 %r2, [%r9];", "ld.shared.u32 %r3, [%r9];", "END: add.u32 %r4, %r2, 1;",
        "{ .reg .b32 x; mov.u32 x, %r3; st.shared.u32 [%r9], x; }",
        "mov.u32 %r5, %tid.x;  // of no use",
    ])
    assert {line - 2 for line in unused_lines(statements(entry(body), "k"))} == {4, 6, 8}


def test_stores_moved_together_from_two_branches_both_count():
    body = "st.global.f32 [%rd1], %f1;\nbra A;\nB:\nst.global.f32 [%rd1], %f2;\nA:"
    assert tied(body, (4, "STG.E")) == {}


def test_every_kind_of_access_is_found():
    body = "\n".join((
        "@%p1 ld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
        "stmatrix.sync.aligned.m8n8.x1.shared::cta.b16 [%r5], {%r1};",
        "cp.async.cg.shared.global [%r1], [%rd2], 16;",
        "cp.async.commit_group;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];",
        "st.volatile.shared.u16 [%r1+-2], %rs1;",
    ))
    found = ties.accesses(statements(entry(body), "k"))
    assert [(a.machine, a.nbytes, a.offset) for a in found.values()] == [
        ("LDG", 16, 16), ("LDSM", 0, 0), ("STSM", 0, 0), ("LDGSTS", 16, 0), ("STS", 2, -2),
    ]


TILES = """
template <int>
__global__ void f(const float* A, float* C, int n)
{
    __shared__ float a[64 * 8], b[8 * 64];
    const int i = threadIdx.x % 64, row = threadIdx.x / 64;
    float sum[8] = {0.0f};
    for (int k0 = 0; k0 < n; k0 += 8) {
        a[threadIdx.x] = A[threadIdx.x];
        b[threadIdx.x] = A[threadIdx.x + 512];
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            const float t = b[k * 64 + i];
            for (int j = 0; j < 8; j++) sum[j] += a[(row * 8 + j) * 8 + k] * t;
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++) C[(row * 8 + j) * 64 + i] = sum[j];
}
"""


@pytest.mark.parametrize("arch", OLDEST_AND_NEWEST)
def test_loads_that_ptxas_merges_across_the_turns_of_a_loop_count_once(arch):
    """The PTX has four turns of two k each, the machine code none: it reads four k at once."""
    A, C = np.arange(1024, dtype=np.float32), np.ones(4096, np.float32)
    compiled, counters = traced(TILES, arch, 512, A, C, np.int32(24))
    loads = Counter(i.access_bytes for i in compiled.sass if i.base == "LDS")
    assert loads == {16: 16, 4: 8}
    warps, tiles = 16, 3
    assert counters["shared_load_instructions"] == warps * tiles * loads.total()
    # One of 16 bytes takes two even where all lanes have one address; and there are two stores.
    assert counters["shared_wavefronts"] == warps * tiles * (2 * 16 + 8 + 2)


LOOP = """mov.u32 %r1, s;
L:
ld.shared.f32 %f1, [%r1+OFFSET];
add.u32 %r1, %r1, STEP;
setp.lt.u32 %p1, %r1, %r9;
@%p1 bra L;"""


@pytest.mark.parametrize("step, merged", [(4, (0, 16, True)), (8, (0, 16, True)), (16, (0, 16))])
def test_a_wide_load_of_a_loop_reads_for_the_turns_in_which_it_is_not_aligned(step, merged):
    assert tied(LOOP.replace("OFFSET", "0").replace("STEP", str(step)), (3, "LDS.128")) == {
        3: merged}


# Where two additions of a turn write it, neither says how far it goes.
@cases("""
made | step
mul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;                     | 8
shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd2, %r2; add.s64 %rd3, %rd2, %rd1;    | 8
mad.lo.s32 %r2, %r1, 8, %r7; cvt.s64.s32 %rd3, %r2;                      | 16
mul.lo.s32 %r2, %r1, %r1; cvt.s64.s32 %rd3, %r2;                         | 0
add.s32 %r2, %r1, %r1; mov.u32 %r1, %r2; mov.u64 %rd3, %rd1;             | 0
@%p2 add.s64 %rd3, %rd3, 8;                                              | 0
add.s64 %rd3, %rd3, %rd4;                                                | 0
                                                                         | 0
add.s64 %rd3, %rd3, 8; add.s64 %rd3, %rd3, 4;                            | 0
mul.wide.s32 %rd3, %r1, 4; xor.b64 %rd3, %rd3, %rd4;                     | 0
add.s32 %r1, %r1, 2; mul.wide.s32 %rd3, %r1, 4;                          | 0
""")
def test_how_far_an_address_goes_in_a_turn(made, step):
    made = made.replace("; ", ";\n")
    body = f"{made}\nld.shared.f32 %f1, [%rd3];\nadd.s32 %r1, %r1, 2;\n@%p1 bra L;"
    (access,) = ties.accesses(statements(entry(f"L:\n{body}"), "k")).values()
    assert access.step == step


def test_the_first_turn_s_parts_say_where_a_load_for_several_turns_begins():
    body = LOOP.replace("OFFSET", "-124").replace("STEP", "8").replace(
        "add.u32", "ld.shared.f32 %f2, [%r1+-128];\nadd.u32")
    assert tied(body, (3, "LDS.128")) == {3: (-128, 16, True), 4: None}


def test_what_a_wide_load_has_read_ahead_counts_nothing_behind_a_branch():
    """What is left of an unrolled loop: one, two or three elements, of which one load has all."""
    body = """ld.shared.f32 %f1, [%r1];
@%p1 bra END;
ld.shared.f32 %f2, [%r1+4];
@%p2 bra END;
ld.shared.f32 %f3, [%r1+8];
END:
ld.shared.f32 %f4, [%r1+12];"""
    assert tied(body, (1, "LDS.128"), (7, "LDS")) == {1: (0, 16), 3: None, 5: None}
    # Behind a label, or with another base, that load may not have been executed.
    assert tied(body, (1, "LDS.128")) == {1: (0, 16), 3: None, 5: None}
    again = "mov.u32 %r1, s;\n" + body.replace("@%p2 bra END;", "add.u32 %r1, %r1, 32;")
    assert tied(again, (2, "LDS.128"), (6, "LDS"), (8, "LDS")) == {2: (0, 16)}
    # Stores are not moved before a branch.
    stores = body.replace("ld.shared.f32 %f", "st.shared.f32 [%r1], %f")
    assert tied(stores, (1, "STS.128")) == {1: (0, 16)}
