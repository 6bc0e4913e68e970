// 26, step: few tiles: 22's block for a tile, of 8-bit operands with scales.
//
// Changes:    where C has fewer tiles than the chip has SMs, as with few rows, 26's persistent blocks
//             leave SMs idle. Here a tile is a block's, in a deeper ring; blocks of a cluster share
//             A's tiles, or a tile's steps of K, whose promoted sums they add up.
// Bottleneck: the SMs that 26 leaves idle, and how many bytes are on their way at once.
// Launch:     as 22, not SWAPPED: block 2 * BM + 32. Boxes: A (BM / CLUSTER_N, 128), B (BN /
//             CLUSTER_M, 128) of its columns. C_map isn't read.
// Runs on:    sm_90a.
//
// TC, SCALES: as in 26. Two sets of partial sums, so that one is promoted behind the other's products;
// a step is short here, and scales are read four steps ahead.
// The rest:   as in 22.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "scales.cuh"
#include "split_k.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "updates.cuh"
#include "wgmma_fp8.cuh"

template <class TC, int BM, int BN, int STAGES, int CLUSTER_M, int CLUSTER_N, int CLUSTER_K,
          Scales SCALES>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N * CLUSTER_K, 1, 1)
__launch_bounds__(2 * BM + 32, 1)
few(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
    const __grid_constant__ TensorMap B, float beta, TC* C, const __grid_constant__ TensorMap C_map,
    int a_along, int a_k, int b_along, int b_k, const float* a_scales, const float* b_scales)
{
    constexpr int BK = 128, CONSUMERS = BM / 64;
    constexpr int SHARE_K = CLUSTER_M * CLUSTER_N;  // blocks of a cluster with the same steps of K
    constexpr int CLUSTER = SHARE_K * CLUSTER_K;
    constexpr int A_BYTES = BM * BK, B_BYTES = BK * BN;
    static_assert(SCALES != BLOCKS || SCALED % BN == 0);
    static_assert(CLUSTER_K == 1 || BM * PITCH<BN> * 4 <= STAGES * (A_BYTES + B_BYTES));
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);
    const int tile = blockIdx.x / CLUSTER, rank = CLUSTER > 1 ? cluster_rank() : 0;
    const int rank_k = rank / SHARE_K;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(rank % SHARE_K, rank_k * SHARE_K);
    const int row0 = (tile % tiles_m * CLUSTER_M + neighbours.m) * BM;
    const int col0 = (tile / tiles_m * CLUSTER_N + neighbours.n) * BN;
    const int steps = (K + BK - 1) / BK;
    // The same for all lanes of a warp, and known to be so.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);
            mbarrier_init(freed + 8 * s, neighbours.SHARERS * CONSUMERS);
        }
        mbarrier_init_fence();
        tma_prefetch(A);
        tma_prefetch(B);
    }
    meet<CLUSTER>();
    grid_wait();
    grid_go();
    if constexpr (SCALES == TENSOR) alpha *= a_scales[0] * b_scales[0];

    Ring<STAGES> ring;
    if (warp >= 4 * CONSUMERS) {
        if (threadIdx.x % 32 == 0) {
            for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
                const unsigned arrival = filled + 8 * ring.stage;
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                mbarrier_expect(arrival, A_BYTES + B_BYTES);
                neighbours.template load<BM, BN, false>(a, A, b, B, arrival, row0, col0, step * BK);
            }
            if constexpr (CLUSTER_K == 1) neighbours.stay(freed, ring);
        }
    } else {
        const ScaleMap of_a = {a_scales, a_along, a_k}, of_b = {b_scales, b_along, b_k};
        const int shift = warp / 4 * 64;  // the warpgroup's first row of the tile
        const int mine = (steps - rank_k + CLUSTER_K - 1) / CLUSTER_K;  // steps of this block
        float sum[BN / 2] = {}, part[2][BN / 2];
        Share shares[4];  // of the step whose sums are promoted next, and of three more
        auto read = [&](Share& share_of, int step) {
            const int block = min(rank_k + step * CLUSTER_K, steps - 1);
            share_of = share<SCALES, 1>(of_a, of_b, M, N, row0 + shift, col0, block);
        };
        auto ask = [&](float (&to)[BN / 2]) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            multiply_e4m3<BN>(to, As + ring.stage * A_BYTES + shift * 128,
                              Bs + ring.stage * B_BYTES, false);
        };
        int step = 0, before = 0;  // steps promoted, and the stage that its products read
        auto end = [&](float (&from)[BN / 2], Factors scale) {
            neighbours.release(freed + 8 * before);
            promote<SCALES>(sum, from, scale);
            before = ring.stage;
            ring.next();
            ++step;
        };
        // The next products run while those of the step before are promoted.
        auto follow = [&](float (&to)[BN / 2], float (&from)[BN / 2], Share& share_of) {
            ask(to);
            const Factors scale = exchanged<SCALES>(share_of, 0);
            read(share_of, step + 4);
            wgmma_wait<1>();
            end(from, scale);
        };
        auto finish = [&](float (&from)[BN / 2], Share share_of) {
            const Factors scale = exchanged<SCALES>(share_of, 0);
            wgmma_wait<0>();
            end(from, scale);
        };
        if (mine > 0) {
#pragma unroll
            for (int i = 0; i < 4; ++i) read(shares[i], i);
            ask(part[0]);
            before = ring.stage;
            ring.next();
            while (step + 4 < mine) {
#pragma unroll
                for (int i = 0; i < 4; ++i) follow(part[(i + 1) % 2], part[i % 2], shares[i]);
            }
            const int left = mine - step;
            if (left > 1) follow(part[1], part[0], shares[0]);
            if (left > 2) follow(part[0], part[1], shares[1]);
            if (left > 3) follow(part[1], part[0], shares[2]);
            if (left == 1) finish(part[0], shares[0]);
            if (left == 2) finish(part[1], shares[1]);
            if (left == 3) finish(part[0], shares[2]);
            if (left == 4) finish(part[1], shares[3]);
        }
        MARK(STORE);
        if constexpr (SCALES == VECTOR)
            scale_vectors(sum, of_a, of_b, M, N, row0 + shift, col0);
        if constexpr (CLUSTER_K == 1) {
            update_tile<false>(C, M, N, row0 + warp * 16, col0, alpha, sum, beta);
        } else {
            // Sums take the place of the ring, of which no product is left to be read.
            barrier_sync(1, CONSUMERS * 128);
            leave_sums<false, BN>(As, sum, warp);
        }
    }
    if constexpr (CLUSTER_K > 1)
        add_sums<BM, BN, CLUSTER_K, SHARE_K>(As, rank % SHARE_K, rank_k, C, M, N, row0, col0, alpha,
                                             beta);
    TIMELINE_END;
}
