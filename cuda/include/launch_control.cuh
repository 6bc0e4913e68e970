// Launch control: a running cluster cancels one that has not begun, and does its work (sm_100).
//
// So a grid has a cluster for each tile, and blocks stay: who is done first takes the next tile.
// The answer, 16 bytes, is written by the copy engine to both blocks, and arrives on an mbarrier of
// each. Behind a refusal a block may not ask again. PTX ISA 9.7.13.16.
#pragma once

#include "cta_pairs.cuh"
#include "mbarrier.cuh"

// Ask for a cluster; one thread does it for all of its own.
__device__ inline void try_cancel(unsigned to, unsigned barrier)
{
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                 ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(to), "r"(barrier) : "memory");
}

// The index of the cancelled cluster's first block, or -1 where none was left.
__device__ inline int cancelled(unsigned answer)
{
    int block;
    asm volatile("{\n"
                 ".reg .b128 answer;\n"
                 ".reg .pred granted;\n"
                 "mov.b32 %0, -1;\n"
                 "ld.shared.b128 answer, [%1];\n"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 granted, answer;\n"
                 "@granted clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"
                 " %0, answer;\n"
                 "}\n" : "=r"(block) : "r"(answer) : "memory");
    return block;
}

// Answers in shared memory, and for each a barrier in both blocks on which it arrives, and one of
// the leader's on which all who have read it arrive: `readers` of both blocks.
template <int SLOTS>
struct Answers {
    uint4 answers[SLOTS];
    unsigned long long told[SLOTS], read[SLOTS];
};

// The tiles of a pair, as each of its roles walks through them. Without CONTROL, every so manieth.
template <bool CONTROL, int SLOTS>
struct Tiles {
    unsigned answers, told, read;
    int rank;
    Ring<SLOTS> ring;

    __device__ Tiles(Answers<SLOTS>& shared, int rank)
        : answers(shared_address(shared.answers)), told(shared_address(shared.told)),
          read(shared_address(shared.read)), rank(rank) {}

    // For one thread of a block; behind it, a fence and a barrier of the cluster.
    __device__ void init(int readers) const
    {
        for (int i = 0; i < (CONTROL ? SLOTS : 0); ++i) {
            mbarrier_init(told + 8 * i, 1);  // the thread that expects an answer, and its bytes
            mbarrier_init(read + 8 * i, readers);
        }
    }

    // For one thread of each block: the leader's asks for the tile behind this one.
    __device__ void ask() const
    {
        if constexpr (CONTROL) {
            if (rank == LEADER) mbarrier_wait(read + 8 * ring.stage, ring.parity ^ 1);
            mbarrier_expect(told + 8 * ring.stage, 16);
            if (rank == LEADER) try_cancel(answers + 16 * ring.stage, told + 8 * ring.stage);
        }
    }

    // The tile behind t; behind the last, one that isn't there.
    __device__ int next(int t)
    {
        if constexpr (!CONTROL) return t + gridDim.x / 2;
        mbarrier_wait(told + 8 * ring.stage, ring.parity);
        const int block = cancelled(answers + 16 * ring.stage);
        fence_async_proxy();  // the next answer is written behind this read
        mbarrier_arrive_at(read + 8 * ring.stage, LEADER);
        ring.next();
        return block < 0 ? gridDim.x : block / 2;
    }
};
