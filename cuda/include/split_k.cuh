// Split-K inside a cluster: the blocks that share a tile's steps of K leave their partial sums in
// shared memory, and each adds up the rows of its share from all of them (sm_90).
#pragma once

#include "cluster.cuh"
#include "pitched.cuh"

// Floats in a row of partial sums of BN columns: eight rows begin in eight groups of banks.
template <int BN> constexpr int PITCH = BN + 4;

__device__ inline void store_shared(unsigned to, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

// A warp's sums as wgmma leaves them, 16 rows of the tile, or, SWAPPED, 16 columns, into rows of
// C's tile in shared memory. `warp` is its number among those that multiply.
template <bool SWAPPED, int BN, int SUMS>
__device__ inline void leave_sums(unsigned tile, const float (&sum)[SUMS], int warp)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SUMS / 2; ++i) {
        const int along = warp * 16 + lane / 4 + i % 2 * 8;  // the warpgroups' 64 rows
        const int across = i / 2 * 8 + lane % 4 * 2;         // and wgmma's columns
        if constexpr (SWAPPED) {
            store_shared(tile + (across * PITCH<BN> + along) * 4, sum[2 * i]);
            store_shared(tile + ((across + 1) * PITCH<BN> + along) * 4, sum[2 * i + 1]);
        } else {
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                         ::"r"(tile + (along * PITCH<BN> + across) * 4), "f"(sum[2 * i]),
                         "f"(sum[2 * i + 1]) : "memory");
        }
    }
}

// All threads of the cluster's blocks: block `rank_k` of CLUSTER_K, of which the first has the
// cluster's rank `first` and the others follow STRIDE ranks apart, adds up BM / CLUSTER_K rows,
// always in the order of K, and writes them to C from (row, col) on. `pitch`: as in pitched.cuh, if
// C isn't tight.
template <int BM, int BN, int CLUSTER_K, int STRIDE, bool PITCHED = false, class TC>
__device__ inline void add_sums(unsigned tile, int first, int rank_k, TC* C, int M, int N, int row,
                                int col, float alpha, float beta, int pitch = 0)
{
    constexpr int ROWS = BM / CLUSTER_K, FOURS = ROWS * BN / 4;
    cluster_barrier();
    for (int i = threadIdx.x; i < FOURS; i += blockDim.x) {
        const int r = rank_k * ROWS + i / (BN / 4), c = i % (BN / 4) * 4;
        float4 part[CLUSTER_K];
#pragma unroll
        for (int k = 0; k < CLUSTER_K; ++k)
            part[k] = cluster_load(cluster_address(tile + (r * PITCH<BN> + c) * 4,
                                                   first + k * STRIDE));
#pragma unroll
        for (int k = 1; k < CLUSTER_K; ++k) {
            part[0].x += part[k].x, part[0].y += part[k].y;
            part[0].z += part[k].z, part[0].w += part[k].w;
        }
        const int inside = row + r < M ? N - (col + c) : 0;
        TC* to = &C[(size_t)(row + r) * (PITCHED ? pitch : N) + col + c];
        const float2 low = make_float2(part[0].x, part[0].y);
        const float2 high = make_float2(part[0].z, part[0].w);
        if constexpr (PITCHED) {
            const bool even = begins_on<2 * sizeof(TC)>(C, pitch);
            update_two(to, even, inside, alpha, low, beta);
            update_two(to + 2, even, inside - 2, alpha, high, beta);
        } else if (begins_on<4 * sizeof(TC)>(C, N)) {
            if (inside > 0) update_four(to, alpha, part[0], beta);
        } else if (N % 2 == 0) {
            update_pair<true>(to, inside, alpha, low, beta);
            update_pair<true>(to + 2, inside - 2, alpha, high, beta);
        } else {
            update_pair<false>(to, inside, alpha, low, beta);
            update_pair<false>(to + 2, inside - 2, alpha, high, beta);
        }
    }
    cluster_barrier();  // no block leaves while another may read its sums
}
