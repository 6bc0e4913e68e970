// 18 with a barrier of the whole block per step, as in 17, or with mbarriers, as it is.
//
// WHOLE:      all warps meet before a tile is asked for where the step before lay. Otherwise thread
//             0 waits on the stage's `empty` mbarrier.
// The rest:   as in 18.
#include "mbarrier.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP, bool WHOLE>
__global__ void __launch_bounds__(2 * BM, 1)
tma_barrier(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A,
            const __grid_constant__ TensorMap B, float beta, TC* C)
{
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;
    extern __shared__ unsigned char storage[];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    const unsigned tiles = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const unsigned filled = shared_address(full), freed = shared_address(empty);
    const int2 tile = raster<GROUP>(blockIdx.x, (M + BM - 1) / BM, (N + BN - 1) / BN);
    const int row0 = tile.x * BM, col0 = tile.y * BN, steps = (K + BK - 1) / BK;
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier_init(filled + 8 * s, 1);        // thread 0, and the bytes it announces
            mbarrier_init(freed + 8 * s, BM / 64);  // one thread of each warpgroup
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    Ring<STAGES> asked;
    auto fetch = [&](int step) {  // for thread 0
        const unsigned a = tiles + asked.stage * STAGE_BYTES, b = a + A_BYTES;
        const unsigned arrival = filled + 8 * asked.stage, k = step * BK;
        if (step >= steps) return;
        if (!WHOLE) mbarrier_wait(freed + 8 * asked.stage, asked.parity ^ 1);
        mbarrier_expect(arrival, STAGE_BYTES);
        tma_load(a, A, arrival, row0, k);
        if constexpr (B_BY_ROWS) {
#pragma unroll
            for (int n = 0; n < BN; n += 64) tma_load(b + n * 128, B, arrival, k, col0 + n);
        } else {
            tma_load(b, B, arrival, col0, k);
        }
        asked.next();
    };

    MARK(LOAD);
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES - 1; ++s) fetch(s);
    Ring<STAGES> ring;
    float sum[BN / 2] = {};
    for (int step = 0; step < steps; ++step, ring.next()) {
        MARK(WAIT);
        mbarrier_wait(filled + 8 * ring.stage, ring.parity);
        if (WHOLE) __syncthreads();  // everyone has multiplied the step before
        MARK(COMPUTE);
        const unsigned a = tiles + ring.stage * STAGE_BYTES + warpgroup * 64 * 128;
        const unsigned b = tiles + ring.stage * STAGE_BYTES + A_BYTES;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            wgmma<BN, T, B_BY_ROWS>(sum, k_major(a + k * 2),
                                    B_BY_ROWS ? n_major(b + k * 128, BK) : k_major(b + k * 2));
        wgmma_commit();
        MARK(LOAD);
        if (threadIdx.x == 0) fetch(step + STAGES - 1);  // where the step before this one lay
        __syncwarp();
        MARK(COMPUTE);
        wgmma_wait<0>();
        if (!WHOLE && threadIdx.x % 128 == 0) mbarrier_arrive(freed + 8 * ring.stage);
    }

    MARK(STORE);
    update_fragment(C, M, N, row0 + threadIdx.x / 32 * 16, col0, alpha, sum, beta);
    TIMELINE_END;
}
