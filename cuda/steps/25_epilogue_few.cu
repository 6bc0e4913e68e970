// 25, step: 22's tile for a block, with 25's epilogue; all of a tile's K is in one block.
//
// Launch:     as 22 without CLUSTER_K, and rows of C, bias and residual are multiples of 16 bytes.
// Runs on:    sm_90a.
//
// E:          as in 25. What folds columns is not SWAPPED.
// The rest:   as in 22.
#include "fused.cuh"
#include "grid.cuh"
#include "mbarrier.cuh"
#include "multicast.cuh"
#include "operands_swapped.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "updates.cuh"

// y in place of a warp's sums: of its 16 rows of C from `row` on, or, SWAPPED, its 16 columns.
template <bool SWAPPED, class E, class TC, int SUMS>
__device__ inline void apply_all(Fused<E, TC>& epilogue, float (&out)[SUMS / E::FOLD],
                                 const float (&sum)[SUMS], int row, int col, float alpha,
                                 float beta)
{
    const int lane = threadIdx.x % 32;
    if constexpr (SWAPPED) {
        static_assert(E::FOLD == 1);
#pragma unroll
        for (int i = 0; i < SUMS; ++i)
            out[i] = epilogue.one(alpha * sum[i], row + i / 4 * 8 + lane % 4 * 2 + i % 2,
                                  col + lane / 4 + i / 2 % 2 * 8, beta);
    } else {
        constexpr int EACH = 4;
#pragma unroll
        for (int first = 0; first < SUMS / E::FOLD / 4; first += EACH) {
            typename PairOf<TC>::type biases[EACH * E::FOLD];
            epilogue.fetch(biases, (col + first * 8) * E::FOLD);
            float2 values[2 * EACH];
            if (beta == 0.0f)
                epilogue.template apply<false, EACH>(values, sum, biases, first, row, col, alpha,
                                                     beta);
            else epilogue.template apply<true, EACH>(values, sum, biases, first, row, col, alpha,
                                                     beta);
#pragma unroll
            for (int i = 0; i < 2 * EACH; ++i) {
                out[4 * first + 2 * i] = values[i].x;
                out[4 * first + 2 * i + 1] = values[i].y;
            }
        }
    }
}

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int CLUSTER_M,
          int CLUSTER_N, bool SWAPPED, class E>
__global__ void __cluster_dims__(CLUSTER_M * CLUSTER_N, 1, 1)
__launch_bounds__(2 * (SWAPPED ? BN : BM) + 32)
few(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
    const __grid_constant__ TensorMap B, float beta, TC* C, const TC* bias, const TC* residual,
    unsigned* amax)
{
    constexpr int BK = 64, CONSUMERS = (SWAPPED ? BN : BM) / 64;
    constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned As = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned Bs = As + STAGES * A_BYTES;
    const unsigned filled = kept(shared_address(full)), freed = kept(shared_address(empty));
    const int tiles_m = (M + CLUSTER_M * BM - 1) / (CLUSTER_M * BM);
    const int tiles_n = (N + CLUSTER_N * BN - 1) / (CLUSTER_N * BN);
    const int tile = blockIdx.x / CLUSTER;
    const Neighbours<CLUSTER_M, CLUSTER_N> neighbours(CLUSTER > 1 ? cluster_rank() : 0);
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

    Ring<STAGES> ring;
    if (warp >= 4 * CONSUMERS) {
        if (threadIdx.x % 32 == 0) {
            for (int step = 0; step < steps; ++step, ring.next()) {
                const unsigned arrival = filled + 8 * ring.stage;
                const unsigned a = As + ring.stage * A_BYTES, b = Bs + ring.stage * B_BYTES;
                MARK(WAIT);
                mbarrier_wait(freed + 8 * ring.stage, ring.parity ^ 1);
                MARK(LOAD);
                mbarrier_expect(arrival, A_BYTES + B_BYTES);
                neighbours.template load<BM, BN, B_BY_ROWS>(a, A, b, B, arrival, row0, col0,
                                                            step * BK);
            }
            neighbours.stay(freed, ring);
        }
    } else {
        const int warpgroup = warp / 4;
        float sum[(SWAPPED ? BM : BN) / 2] = {};
        Fused<E, TC> epilogue = {C, bias, residual, M, N / E::FOLD};
#pragma unroll
        for (int i = 0; i < (SWAPPED ? BM : 64); i += 64)
            epilogue.template prefetch<(SWAPPED ? 64 : BN) / E::FOLD>(
                row0 + (SWAPPED ? i : warpgroup * 64),
                (col0 + (SWAPPED ? warpgroup * 64 : 0)) / E::FOLD, beta != 0.0f);
        int before = -1;  // the stage that the products in flight read
        for (int step = 0; step < steps; ++step, ring.next()) {
            MARK(WAIT);
            mbarrier_wait(filled + 8 * ring.stage, ring.parity);
            MARK(COMPUTE);
            // Of the operand that the warpgroups divide, the 64 rows or columns of this one.
            constexpr int MINE = 64 * 128;
            const unsigned a = As + ring.stage * A_BYTES + (SWAPPED ? 0 : warpgroup * MINE);
            const unsigned b = Bs + ring.stage * B_BYTES + (SWAPPED ? warpgroup * MINE : 0);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BK; k += 16)
                multiply<SWAPPED, BM, BN, T, B_BY_ROWS, true>(sum, a, b, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (before >= 0) neighbours.release(freed + 8 * before);
            before = ring.stage;
        }
        wgmma_wait<0>();
        if (CLUSTER > 1 && before >= 0) neighbours.release(freed + 8 * before);
        MARK(STORE);
        const int y = row0 + (SWAPPED ? 0 : warp * 16), x = col0 + (SWAPPED ? warp * 16 : 0);
        float out[(SWAPPED ? BM : BN) / 2 / E::FOLD];
        apply_all<SWAPPED>(epilogue, out, sum, y, x / E::FOLD, alpha, beta);
        __syncwarp();  // an element of C may be written by another lane than has read it
        update_tile<SWAPPED>(C, M, N / E::FOLD, y, x / E::FOLD, 1.0f, out, 0.0f);
        epilogue.report(amax);
    }
    TIMELINE_END;
}
