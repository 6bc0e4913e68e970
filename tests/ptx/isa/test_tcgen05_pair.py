"""tcgen05 with `.cta_group::2`: what lies in which block, and what orders the two.

Operands and sums are held against index formulae of this file (and `product`, which has tests of
its own); which block has which rows and columns is layout A and B of PTX ISA 9.7.16.10.5.
"""

import re

import numpy as np
import pytest

from lib import ptx
from tests.ptx.isa.test_tcgen05 import (
    AFTER,
    CLEAR,
    FILL,
    HEAD,
    READ,
    WAIT,
    filled,
    idesc,
    kinds,
    laid_out,
    some,
    wanted,
)
from tests.ptx.isa.test_tcgen05 import multiply as multiplied
from tests.tables import cases

from ..conftest import each_landing, function_of, u32s

BEGIN = """.reg .b32 %rank, %place; .reg .b16 %mask; .reg .pred %leader;
mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %leader, %rank, ISSUER;
and.pred %leader, %leader, %one;
cvt.u64.u32 %x, %rank; mul.lo.u64 %x, %x, IMAGE; add.u64 %image, %image, %x;
cvt.u64.u32 %x, %rank; mul.lo.u64 %x, %x, 32768; add.u64 %out, %out, %x;
"""
CLUSTER = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
INIT = """@%one mbarrier.init.shared::cta.b64 [bar], 1;
@%one fence.mbarrier_init.release.cluster;
"""
ALLOC = """setp.eq.u32 %p, %warp, 0;
@%p tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [base], COLUMNS;
"""
BASE = "ld.shared.b32 %t, [base];\n"
FREE = """bar.sync 0;
@%p tcgen05.dealloc.cta_group::2.sync.aligned.b32 %t, COLUMNS;
"""
MMA = "@%leader tcgen05.mma.cta_group::2.kind::KIND [%t], %a, %b, %idesc, %q;\n"
COMMIT = ("mov.u16 %mask, 3;\n@%leader tcgen05.commit.cta_group::2.mbarrier::arrive::one."
          "shared::cluster.multicast::cluster.b64 [bar], %mask;\n")
START = BEGIN + INIT + CLUSTER + ALLOC
PROGRAM = (START + "bar.sync 0;\n" + BASE + CLEAR + FILL + CLUSTER + AFTER + MMA + COMMIT + WAIT
           + AFTER + READ + FREE + CLUSTER)


def run(body, out=None, image=None, issuer=0, columns=64, cluster=2, grid=2, given=(0, 0, 0, 0),
        **options):
    image = np.zeros((2, 16), np.uint8) if image is None else image
    out = u32s((2, 128, 64)) if out is None else out
    size = image[0].size
    text = (HEAD + body + "ret; }").replace("COLUMNS", str(columns))
    text = text.replace("ISSUER", str(issuer)).replace("IMAGE", str(size))
    return function_of(text)(
        grid, 128, (image, out, np.uint32(size), *given), size, cluster=cluster, **options
    )


def multiply(*case, m=256, program=PROGRAM, **options):
    """Run one mma of a pair; returns the launch, both blocks' tensor memory, A's and B's codes."""
    return multiplied(*case, m=m, program=program, launch=run, blocks=2, **options)


def gathered(out, m, n):
    """Put D together: M = 256, a lane a row; M = 128, the right half of the columns 64 lanes on."""
    if m == 256:
        return np.concatenate(list(out))[:, :n]
    return np.concatenate([np.hstack([half[:64, : n // 2], half[64:, : n // 2]]) for half in out])


@cases("""
a_kind b_kind d   m   n  swizzle trans
f16    f16    f32 256 64 128 kk
bf16   bf16   f32 128 64 128 kk
f16    f16    f16 256 32 64  km
bf16   bf16   f32 256 64 0   mk
tf32   tf32   f32 128 32 32  kk
e4m3   e5m2   f32 256 48 128 kk
u8     s8     s32 256 64 128 kk
e2m1   e3m2   f32 128 16 128 kk
""")
def test_products(a_kind, b_kind, d, m, n, swizzle, trans):
    launch, out, a, b = multiply(a_kind, b_kind, d, m=m, n=n, swizzle=swizzle, trans=trans,
                                 races=True)
    assert not launch.hazards
    assert (gathered(out, m, n) == wanted(a, b, (a_kind, b_kind, d))).all()
    assert launch.trace.matrix_counters()["tcgen05_instructions"] == 1  # of both blocks


@pytest.mark.parametrize("options", [
    {"issuer": 1}, {"landing": "late"}, {"landing": "late", "schedule": "highest"},
    {"schedule": "random", "seed": 5},
], ids=str)
def test_either_block_issues_in_any_order(options):
    launch, out, a, b = multiply(races=True, **options)
    assert not launch.hazards
    assert (gathered(out, 256, 64) == wanted(a, b)).all()


def test_lanes_of_both_blocks_are_left_out():
    zero = filled(7) + CLUSTER + AFTER
    mask = "".join(f"mov.u32 %m{i}, {1 << i};" for i in range(8))
    regs = ".reg .b32 %m<8>;" + mask + zero
    masked = MMA.replace("%q;", "{%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}, %q;")
    launch, out, a, b = multiply(program=PROGRAM.replace(MMA, regs + masked), races=True)
    assert not launch.hazards
    right, off = wanted(a, b), [32 * i + i for i in range(8)]
    right[off] = 7
    assert (gathered(out, 256, 64) == right).all()
    with pytest.raises(ptx.ParseError, match="8 registers, 4 for each block"):
        few = masked.replace(", %m4, %m5, %m6, %m7", "")
        multiply(program=PROGRAM.replace(MMA, regs + few))


@pytest.mark.parametrize("m", [256, 128])
def test_a_in_tensor_memory(m):
    """A copied there by tcgen05.cp: of M = 128, the same 64 rows into both halves of the lanes."""
    rng = np.random.default_rng(m)
    a, b = some(rng, "f16", (m, 16)), some(rng, "f16", (64, 16))
    images = []
    for rank in range(2):
        mine = a[rank * m // 2 : (rank + 1) * m // 2]
        lanes = np.concatenate([mine, mine]) if m == 128 else mine
        a_image, a_desc = laid_out(lanes, "f16", 0, 0, 0)
        b_image, b_desc = laid_out(b[rank * 32 : rank * 32 + 32], "f16", 0, 0, 1 << 15)
        images.append(a_image | b_image)
    copy = ("@%leader tcgen05.cp.cta_group::2.128x256b [%t+64], %a;\n"
            + MMA.replace("%a,", "[%t+64],").replace("KIND", "f16"))
    out = u32s((2, 128, 64))
    given = a_desc, b_desc, np.uint32(idesc(m=m)), np.uint32(0)
    launch = run(PROGRAM.replace(MMA, copy), out, np.stack(images), given=given, columns=128,
                 races=True)
    assert not launch.hazards
    assert (gathered(out, m, 64) == wanted(a, b)).all()


def test_a_shift_moves_lanes_of_both_blocks():
    rows = np.arange(2 * 128 * 8, dtype=np.uint32).reshape(2, 128, 8)
    images = [laid_out(part, "tf32", 0, 0, 0) for part in rows]
    copy = ("@%leader tcgen05.cp.cta_group::2.128x256b [%t], %a;\n"
            "@%leader tcgen05.cp.cta_group::2.128x256b [%t+32], %a;\n")
    shift = "@%leader tcgen05.shift.cta_group::2.down [%t];\n"
    # Both blocks have seen the first commit before the second can complete the next phase.
    first = WAIT.replace("wait", "first", 1).replace("bra wait", "bra first") + AFTER + CLUSTER
    out = u32s((2, 128, 64))
    # A shift behind a copy is in no order: so a commit and a wait stand in between.
    program = PROGRAM.replace(MMA, copy + COMMIT + first + shift)
    program = program.replace(COMMIT + WAIT, COMMIT + WAIT.replace("[bar], 0", "[bar], 1"))
    program = program.replace(FILL, CLUSTER + BASE + filled(0) + FILL)
    launch = run(program, out, np.stack([i for i, _ in images]), given=(images[0][1], 0, 0, 0),
                 races=True)
    assert not launch.hazards
    found, before = (each.reshape(2, 4, 32, 8) for each in (out[:, :, :8], rows))
    assert (found[:, :, :31] == before[:, :, 1:]).all()
    assert (found[:, :, 31] == before[:, :, 31]).all() and (out[:, :, 32:40] == rows).all()


# -- what is wrong with a pair ------------------------------------------------------------------


RELAXED = CLUSTER.replace("arrive.", "arrive.relaxed.")


@pytest.mark.parametrize("old,new,kind,words", [
    # cutlass #3316: nothing says that the peer was launched.
    (INIT + CLUSTER, INIT, "tensor memory",
     r"allocates tensor memory together with block \(1, 0, 0\), and nothing tells it"),
    (INIT + CLUSTER, INIT + RELAXED, None, ""),
    (FREE, "", "tensor memory", "never freed"),
    # Out of step: the barrier between the allocation and the mma is one of the block alone.
    (CLUSTER + AFTER + MMA, "bar.sync 0;" + AFTER + MMA, "tensor memory",
     "accesses tensor memory of its pair while nothing orders it behind.*"
     r"tcgen05.alloc of block \(1, 0, 0\)"),
    # The peer reads its half of D behind no wait: the mma may still write it.
    (WAIT, "@!%leader bra over;" + WAIT + "over: bar.sync 0;", "tensor memory in flight",
     r"block \(1, 0, 0\)"),
    # The peer's shared memory is filled behind the barrier of the cluster.
    (FILL + CLUSTER, CLUSTER + FILL, "race", "asynchronous read after write in shared memory"),
])
def test_what_orders_a_pair(old, new, kind, words):
    assert old in PROGRAM
    launch, *_ = multiply(program=PROGRAM.replace(old, new), races=True)
    assert kind in kinds(launch) if kind else not launch.hazards
    assert re.search(words, " ".join(h.message for h in launch.hazards))


def test_both_blocks_have_allocated_before_one_frees():
    """cutlass #3435."""
    body = BEGIN + CLUSTER + ALLOC + "bar.sync 0;" + BASE + "BARRIER" + FREE + CLUSTER
    assert not run(body.replace("BARRIER", CLUSTER), races=True).hazards
    found = run(body.replace("BARRIER", ""), races=True).hazards
    assert found and all("frees tensor memory of its pair while" in h.message for h in found)


def test_a_peer_that_never_allocates():
    body = BEGIN + CLUSTER + "setp.eq.u32 %p, %tid, 0; setp.ne.u32 %q, %rank, 0; @%q bra end;"
    body += ALLOC + FREE + "end:"
    with pytest.raises(ptx.Deadlock, match=r"until a warp of block \(1, 0, 0\) runs tcgen05.alloc"):
        run(body)


def test_both_allocate_as_many_columns():
    body = BEGIN + CLUSTER + "setp.eq.u32 %p, %warp, 0; mad.lo.u32 %d, %rank, 32, 32;"
    body += "@%p tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [base], %d;"
    with pytest.raises(ptx.Error, match="allocate 32 and 64 columns together"):
        run(body)


def test_a_commit_without_multicast_leaves_the_peer_waiting():
    alone = COMMIT.replace(".multicast::cluster", "").replace(", %mask;", ";")
    with pytest.raises(ptx.Deadlock, match=r"mbarrier at 0x[0-9a-f]+ of block \(1, 0, 0\)"):
        multiply(program=PROGRAM.replace(COMMIT, alone))


def test_refusals():
    with pytest.raises(ptx.Error, match="clusters of an even number of blocks, these have 1"):
        run(BEGIN + ALLOC, cluster=1)
    with pytest.raises(ptx.ParseError, match="all of a kernel's tcgen05 instructions must have"):
        run(START + FREE.replace("cta_group::2", "cta_group::1"))
    for m, n in ((64, 64), (128, 24), (256, 8)):
        bits = idesc(m=m, n=n)
        with pytest.raises(ptx.Error, match=f"asks for M = {m}, N = {n}.*cta_group::2 has not"):
            multiply(program=PROGRAM.replace(MMA, f"mov.u32 %idesc, {bits};" + MMA))
    with pytest.raises(ptx.Error, match="the mask 0x5 names blocks that the cluster of 2 has not"):
        multiply(program=PROGRAM.replace("mov.u16 %mask, 3", "mov.u16 %mask, 5"))


# -- an mbarrier of the leader --------------------------------------------------------------------

# Of both blocks a thread arrives at the leader's, to whose address a mask takes its own.
LED = BEGIN + """.shared .align 1024 .b8 here[1024]; .reg .b32 %h, %l;
mov.u32 %h, here; add.u32 %h, %h, 72;
@%one mbarrier.init.shared::cta.b64 [%h], 2;
@%one fence.mbarrier_init.release.cluster;
""" + CLUSTER + """and.b32 %l, %h, MASK;
@%one mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%l];
setp.ne.u32 %q, %rank, 0; @%q bra over;
wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%h], 0; @!%q bra wait;
over:
""" + CLUSTER + ALLOC + CLUSTER + BASE + FREE + CLUSTER


FENCED = "@%one fence.mbarrier_init.release.cluster;\n"
STORE = "@%one st.shared.b32 [here+128], %tid;\n"
STORED = LED.replace(FENCED, STORE + FENCED).replace(CLUSTER, RELAXED, 1)


@pytest.mark.parametrize("text,mask,kind", [
    # The third is what the compiler makes of an address that is 64 or 72 mod 1,024.
    *((LED, mask, None) for mask in (-0x01000001, -0x01000008, -0x010003B8)),
    # A fence of inits lasts over a relaxed arrival, which orders nothing without it.
    (LED.replace(CLUSTER, RELAXED, 1), -0x01000001, None),
    (LED.replace(CLUSTER, RELAXED, 1).replace(FENCED, ""), -0x01000001, "race"),
    # It orders no other store.
    (STORED, -0x01000001, None),
    (STORED.replace("and.b32 %l", "ld.shared.b32 %t, [here+128];\nand.b32 %l"), -0x01000001,
     "race"),
])
def test_the_mask_clears_the_peers_bit_and_any_that_are_0(text, mask, kind):
    found = kinds(run(text.replace("MASK", str(mask)), races=True))
    assert kind in found if kind else not found


def test_another_mask_leaves_a_block_its_own_address():
    with pytest.raises(ptx.Deadlock):
        run(LED.replace("MASK", "-1"))


# -- copies that signal a pair's mbarrier ---------------------------------------------------------

CAST = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {
.reg .pred %one, %first, %p, %q; .reg .b32 %tid, %rank, %b, %v, %z; .reg .b16 %m;
.reg .b64 %map, %out, %x;
.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %out, [out];
mov.u32 %tid, %tid.x; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %one, %tid, 0;
@%one mbarrier.init.shared::cta.b64 [bar], 1; @%one fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.eq.u32 %p, %rank, SIGNALLED; and.pred %p, %p, %one;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
setp.eq.u32 %first, %rank, 0; and.pred %first, %first, %one;
mov.u32 %b, bar; mapa.shared::cluster.u32 %b, %b, SIGNALLED; mov.u16 %m, 3; mov.u32 %z, 0;
@%first cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global""" \
    """.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%map, {%z, %z}], [%b], %m;
setp.ne.u32 %q, %rank, SIGNALLED; @%q bra over;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra wait;
over: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mul.lo.u32 %b, %tid, 8; mov.u32 %v, tile; add.u32 %b, %b, %v; ld.shared.b64 %map, [%b];
mul.wide.u32 %x, %rank, 256; add.u64 %out, %out, %x; mul.wide.u32 %x, %tid, 8;
add.u64 %out, %out, %x; st.global.b64 [%out], %map; ret; }
"""


@each_landing
@pytest.mark.parametrize("signalled", [0, 1])
def test_a_multicast_signals_the_block_of_one_parity(signalled, landing):
    """Both blocks' bytes are counted where the mbarrier's address lies: 2 · 256 bytes."""
    array, out = np.arange(256, dtype=np.uint8).reshape(4, 64), np.zeros((2, 256), np.uint8)
    launch = function_of(CAST.replace("SIGNALLED", str(signalled)))(
        2, 32, (ptx.tensor_map(array, (4, 64)), out), cluster=2, races=True, landing=landing)
    assert not launch.hazards
    assert (out == array.ravel()).all()


def test_the_barrier_of_another_block_needs_the_group():
    text = CAST.replace("SIGNALLED", "1").replace("cta_group::2.", "").replace(
        ".multicast::cluster", "").replace(", %m;", ";")
    array = np.zeros((4, 64), np.uint8)
    with pytest.raises(ptx.Error, match="or with .cta_group::2 the other one of its pair"):
        function_of(text)(2, 32, (ptx.tensor_map(array, (4, 64)), array), cluster=2)
