// 22, step: its tiles in widths between the multiples of 64 columns, of a B that is column-major.
//
// Changes:    a tile's columns are any multiple of 16 for which widths.cuh has products, so that a C
//             of 512 × 7168 is as many tiles as there are SMs.
// Launch:     as 22, not SWAPPED. Boxes: A (BM / CLUSTER_N, 64), B (BN / CLUSTER_M, 64).
// Runs on:    sm_90a.
//
// The rest:   as in 22.
#include "barrier.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "split_k.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "widths.cuh"

template <class T, class TC, int BM, int BN, int STAGES, int CLUSTER_M, int CLUSTER_N,
          int CLUSTER_K>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N * CLUSTER_K, 1, 1)
__launch_bounds__(2 * BM + 32)
few_tiles_widths(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
                 const __grid_constant__ TensorMap B, float beta, TC* C)
{
    constexpr int BK = 64, CONSUMERS = BM / 64;
    constexpr int SHARE_K = CLUSTER_M * CLUSTER_N;  // blocks of a cluster with the same steps of K
    constexpr int CLUSTER = SHARE_K * CLUSTER_K;
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    static_assert(CLUSTER_K == 1 || BM * PITCH<BN> * 4 <= STAGES * (A_BYTES + B_BYTES));
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int tile = blockIdx.x / CLUSTER, rank = CLUSTER > 1 ? cluster_rank() : 0;
    const int rank_k = rank / SHARE_K;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(rank % SHARE_K, rank_k * SHARE_K);
    const int row0 = (tile % tiles_m * CLUSTER_M + neighbours.m) * BM;
    const int col0 = (tile / tiles_m * CLUSTER_N + neighbours.n) * BN;
    // The blocks that share K take its steps in turn: what they load together lies together.
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
                neighbours.template load<BM, BN, false>(a, A, b, B, arrival, row0, col0,
                                                        step * BK);
            }
            if constexpr (CLUSTER_K == 1) neighbours.stay(freed, ring);
        }
    } else {
        const int warpgroup = warp / 4;
        float sum[BN / 2] = {};
        int before = -1;  // the stage that the products in flight read
        for (int step = rank_k; step < steps; step += CLUSTER_K, ring.next()) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            const unsigned a = As + ring.stage * A_BYTES + warpgroup * 64 * 128;
            const unsigned b = Bs + ring.stage * B_BYTES;
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16) multiply_width<BN, T>(sum, a, b, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (before >= 0) neighbours.release(freed + 8 * before);
            before = ring.stage;
        }
        wgmma_wait<0>();
        if (SHARE_K > 1 && before >= 0) neighbours.release(freed + 8 * before);
        MARK(STORE);
        if constexpr (CLUSTER_K == 1) {
            update_width(C, M, N, row0 + warp * 16, col0, alpha, sum, beta);
        } else {
            // Partial sums take the place of the ring, of which no product is left to be read.
            barrier_sync(1, CONSUMERS * 128);
            leave_sums<false, BN>(As, sum, warp);
        }
    }
    if constexpr (CLUSTER_K > 1)
        add_sums<BM, BN, CLUSTER_K, SHARE_K>(As, rank % SHARE_K, rank_k, C, M, N, row0, col0,
                                             alpha, beta);
    TIMELINE_END;
}
