"""clusterlaunchcontrol: each block's work is done once, by whomever; what is undefined is told."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import function_of, kinds, u32s

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 done, .param .u64 by) {
.reg .pred %one, %more, %p; .reg .b32 %tid, %x, %y, %z, %i, %n, %parity; .reg .b64 %done, %by, %at;
.reg .b128 %r;
.shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar;
ld.param.u64 %done, [done]; ld.param.u64 %by, [by];
mov.u32 %tid, %tid.x; setp.eq.u32 %one, %tid, 0; mov.u32 %parity, 0;
@%one mbarrier.init.shared::cta.b64 [bar], 1;
@%one fence.mbarrier_init.release.cluster;
SYNC
mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %n, %nctaid.x;
"""
ASK = """@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
@%asks clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytesCAST.b128 """ \
    """[response], [bar];
"""
WORK = """mad.lo.u32 %i, %y, %n, %x; mul.wide.u32 %at, %i, 4; add.u64 %at, %done, %at;
@%one red.global.add.u32 [%at], 1;
mov.u32 %i, %ctaid.x; mul.wide.u32 %at, %i, 4; add.u64 %at, %by, %at;
@%one red.global.add.u32 [%at], 1;
"""
WAIT = """wait: mbarrier.try_wait.parity.shared::cta.b64 %more, [bar], %parity; @!%more bra wait;
xor.b32 %parity, %parity, 1;
"""
QUERY = """ld.shared.b128 %r, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %r;
@!%p bra end;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, %r;
"""
NEXT = "fence.proxy.async.shared::cta;\nSYNC\nbra loop;\n"
PROGRAM = HEAD + "loop:\n" + ASK + WORK + WAIT + QUERY + NEXT + "end: LAST ret; }"
RANKS = ".reg .b32 %rank; .reg .pred %asks; mov.u32 %rank, %cluster_ctarank;\n"


def run(text=PROGRAM, grid=(5, 2), cluster=None, threads=64, **options):
    """Launch; returns the launch, how often each block's work was done, and by which column."""
    many = 1 if cluster is None else cluster
    alone = many == 1
    begin = RANKS + "setp.eq.u32 %asks, %rank, 0; and.pred %asks, %asks, %one;\nloop:\n"
    text = text.replace("loop:\n", begin, 1).replace("CAST", "" if alone else
                                                    ".multicast::cluster::all")
    cluster_sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    text = text.replace("SYNC", "bar.sync 0;" if alone else cluster_sync)
    text = text.replace("LAST", "" if alone else cluster_sync)
    if not alone:  # the response names the first block of the cluster
        text = text.replace("fence.proxy", "add.u32 %x, %x, %rank;\nfence.proxy", 1)
    done, by = u32s(grid[::-1]), u32s(grid[0])
    launch = function_of(text)(
        grid, threads, (done, by), cluster=cluster, **options)
    return launch, done, by


@pytest.mark.parametrize("options", [
    {}, {"landing": "late"}, {"schedule": "highest", "landing": "late"},
    {"schedule": "random", "seed": 2}, {"go_on": True},
], ids=str)
@pytest.mark.parametrize("grid,cluster", [((5, 2), None), ((1, 1), None), ((8, 1), 2)])
def test_each_block_s_work_is_done_once(grid, cluster, options):
    launch, done, by = run(grid=grid, cluster=cluster, races=True, **options)
    assert not launch.hazards
    assert (done == 1).all() and by.sum() == done.size
    assert np.count_nonzero(by) <= 2 * (cluster or 1)  # the others never began


def test_a_block_that_does_not_ask_leaves_the_others_to_run():
    launch, done, by = run(PROGRAM.replace(QUERY, QUERY + "bra end;\n"), grid=(6, 1))
    # Each block cancels one, whose work nobody does.
    assert not launch.hazards and done.sum() == 4 and by.sum() == 4 and done.max() == 1


def test_single_coordinates():
    single = "".join(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{a}.b32.b128 %{a}, %r;\n"
                     for a in "xyz")
    text = PROGRAM.replace(QUERY.splitlines()[3] + "\n", single)
    assert "::y" in text
    _, done, _ = run(text)
    assert (done == 1).all()


LAST = "again:" + ASK + WAIT.replace("wait:", "last:").replace("bra wait", "bra last")
AGAIN = QUERY.replace("bra end;", "bra again;") + NEXT + LAST + "end: LAST"
BLIND = "".join(QUERY.splitlines(True)[i] for i in (0, 3, 1, 2))


@pytest.mark.parametrize("old, new, options, kind, words", [
    (QUERY + NEXT + "end: LAST", AGAIN, {"races": False}, "launch control",
     "after its block has seen a request that failed"),
    (QUERY, BLIND, {}, "launch control", "ask query_cancel.is_canceled before"),
    (WAIT, "", {"grid": (1, 1)}, "race", ""),
    (NEXT, NEXT.replace("SYNC\n", ""), {}, "race", "asynchronous write after read"),
    # A response that was read is fenced off from the next, also by a warp alone that asks again.
    (NEXT, "SYNC\nbra loop;\n", {}, "missing proxy fence", "that ordinary instructions read"),
    (ASK + WORK + WAIT + QUERY + NEXT,
     "".join(ASK.splitlines(True)[::-1]) + WORK + WAIT + QUERY + "bra loop;\n", {"threads": 32},
     "missing proxy fence", "that ordinary instructions read"),
])
def test_what_is_wrong_with_a_request(old, new, options, kind, words):
    assert old in PROGRAM
    launch, *_ = run(PROGRAM.replace(old, new), **{"races": True, **options})
    said = kinds(launch)
    assert kind in said if kind == "race" else said == {kind}
    assert any(words in hazard.message for hazard in launch.hazards)


def test_bytes_that_are_no_response():
    text = PROGRAM.replace(QUERY, "mov.b128 %r, {%at, %at};\n" + QUERY.split("\n", 1)[1])
    with pytest.raises(ptx.Error, match="no response of clusterlaunchcontrol.try_cancel"):
        run(text)
    with pytest.raises(ptx.UnsupportedInstruction, match="try_cancel, query_cancel.is_canceled"):
        run(PROGRAM.replace("query_cancel.is_canceled", "query_cancel.is_it"))
