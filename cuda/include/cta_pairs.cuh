// tcgen05 for a pair: two blocks of a cluster whose SMs multiply together (sm_100a).
//
// One thread of the first block, the leader, multiplies for both: 256 rows of A, of which each
// block has 128 in its shared memory, by up to 256 columns of B, of which each has half. Each
// block's tensor memory gets the sums of its own rows. PTX ISA 9.7.16.5.
#pragma once

#include "cluster.cuh"
#include "tcgen05.cuh"
#include "tma.cuh"

constexpr int LEADER = 0;  // the rank of the block that multiplies

// A warp of each block allocates the same columns in both, once it is known that both run.
template <int COLUMNS>
__device__ inline void pair_alloc(unsigned to)
{
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"
                 ::"r"(to), "n"(COLUMNS) : "memory");
}

template <int COLUMNS>
__device__ inline void pair_free(unsigned address)
{
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;"
                 ::"r"(address), "n"(COLUMNS) : "memory");
}

// Begin to load the box at (row, column) to this block; its bytes arrive on a barrier of either
// block of the pair, which is named in the cluster's window (`cluster_address`).
__device__ inline void pair_load(unsigned to, const TensorMap& map, unsigned barrier, int row,
                                 int column)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(to), "l"(&map), "r"(barrier), "r"(column), "r"(row) : "memory");
}

// D (256×N, half of the rows in each block) = A (256×16) · B (16×N), or D += that. `a` and `b` are
// the leader's; what the other block has of them lies at the same addresses there.
template <int N, class T, bool B_BY_ROWS>
__device__ inline void pair_multiply(unsigned d, unsigned long long a, unsigned long long b,
                                     bool adds)
{
    static_assert(N % 16 == 0 && 16 <= N && N <= 256);
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.u32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, adds;\n"
                 "}\n" ::"r"(d), "l"(a), "l"(b), "r"(INSTRUCTION<N, T, B_BY_ROWS, 256>),
                 "r"(unsigned(adds)) : "memory");
}

// The mbarrier at this place of each block has one arrival more when all that this thread has
// issued for the pair is done.
__device__ inline void pair_commit(unsigned barrier)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;"
                 ::"r"(barrier), "h"((unsigned short)3) : "memory");
}
