// Tiles that the blocks of a cluster share: each block loads a part for all that need it (sm_90).
#pragma once

#include "cluster.cuh"
#include "mbarrier.cuh"
#include "tma_batch.cuh"

// A block's place among CLUSTER_M * CLUSTER_N whose tiles of C lie together: below each other those
// share B's tile, beside each other A's. They are the ranks of the cluster from `first` on; `rank`
// counts from there.
template <int CLUSTER_M, int CLUSTER_N>
struct Neighbours {
    static constexpr int COUNT = CLUSTER_M * CLUSTER_N;
    static constexpr int SHARERS = CLUSTER_M + CLUSTER_N - 1;  // that a block loads for, or with
    int first, m, n;
    bool tells;  // whether this thread is one of those that release a stage

    __device__ Neighbours(int rank, int first = 0)
        : first(first), m(rank % CLUSTER_M), n(rank / CLUSTER_M)
    {
        const int to = threadIdx.x % 128;
        tells = to < COUNT && (to % CLUSTER_M == m || to / CLUSTER_M == n);
    }

    // For a producer: begin to load its part of A's tile (BM, 64) for `a` and of B's for `b`; a
    // stage is full when all parts have come. BATCH: of a product among many.
    template <int BM, int BN, bool B_BY_ROWS, bool A_BY_ROWS = true, bool BATCH = false>
    __device__ void load(unsigned a, const TensorMap& A, unsigned b, const TensorMap& B,
                         unsigned arrival, int row, int col, int k, int product = 0) const
    {
        constexpr int A_PART = (A_BY_ROWS ? BM : 64) / CLUSTER_N;
        constexpr int B_PART = (B_BY_ROWS ? 64 : BN) / CLUSTER_M;
        const unsigned short column_of_blocks = (1 << CLUSTER_M) - 1 << first + n * CLUSTER_M;
        unsigned short row_of_blocks = 0;
        for (int i = 0; i < CLUSTER_N; ++i) row_of_blocks |= 1 << (first + i * CLUSTER_M + m);
        a += n * A_PART * 128;
        if constexpr (A_BY_ROWS) {
            tma_load_of<BATCH, CLUSTER_N>(a, A, arrival, row + n * A_PART, k, product,
                                          row_of_blocks);
        } else {
#pragma unroll
            for (int i = 0; i < BM; i += 64)
                tma_load_of<BATCH, CLUSTER_N>(a + i * 128, A, arrival, k + n * A_PART, row + i,
                                              product, row_of_blocks);
        }
        b += m * B_PART * 128;
        if constexpr (B_BY_ROWS) {
#pragma unroll
            for (int i = 0; i < BN; i += 64)
                tma_load_of<BATCH, CLUSTER_M>(b + i * 128, B, arrival, k + m * B_PART, col + i,
                                              product, column_of_blocks);
        } else {
            tma_load_of<BATCH, CLUSTER_M>(b, B, arrival, col + m * B_PART, k, product,
                                          column_of_blocks);
        }
    }

    // For a warpgroup that has read a stage: a thread each tells the blocks that loaded it.
    __device__ void release(unsigned freed) const
    {
        if (!tells) return;
        if constexpr (COUNT > 1) mbarrier_arrive_at(freed, first + threadIdx.x % 128);
        else mbarrier_arrive(freed);
    }

    // For a producer, at its end: the block stays until others' last arrivals on its barriers have
    // come.
    template <int STAGES>
    __device__ void stay(unsigned freed, Ring<STAGES> ring) const
    {
        if constexpr (COUNT > 1)
            for (int s = 0; s < STAGES; ++s, ring.next())
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
    }
};

// The blocks of a cluster meet, or, of one block, its threads.
template <int BLOCKS>
__device__ inline void meet()
{
    if constexpr (BLOCKS > 1) cluster_barrier();
    else __syncthreads();
}
