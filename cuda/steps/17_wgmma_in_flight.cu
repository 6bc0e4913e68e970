// 17 with its stages given back a step later, so that the products of two steps can be in flight.
//
// Changes:    a tile is asked for STAGES - 2 steps ahead, not STAGES - 1, and goes where the step
//             before the last one lay: everyone has waited for that one's products, whatever
//             IN_FLIGHT is.
//
// IN_FLIGHT:  groups of products that may run on when a step ends, 0 or 1.
// The rest:   as in 17.
#include "cp_async.cuh"
#include "pairs.cuh"
#include "raster.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

template <class T, class TC, int BM, int BN, int STAGES, bool B_BY_ROWS, int GROUP,
          int IN_FLIGHT>
__global__ void __launch_bounds__(2 * BM, 1)
wgmma_in_flight(int M, int N, int K, float alpha, const T* A, const T* B, float beta, TC* C)
{
    constexpr int AHEAD = STAGES - 2;  // tiles that are asked for before they are multiplied
    static_assert(AHEAD > 0 && IN_FLIGHT <= 1);
    constexpr int BK = 64;  // elements in a row of 128 bytes, the span of the swizzle
    constexpr int THREADS = 2 * BM;  // a warpgroup for 64 rows
    constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;
    extern __shared__ unsigned char storage[];
    const unsigned tiles = (shared_address(storage) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES;
    const int2 tile = raster<GROUP>(blockIdx.x, (M + BM - 1) / BM, (N + BN - 1) / BN);
    const int row0 = tile.x * BM, col0 = tile.y * BN, steps = (K + BK - 1) / BK;
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    TIMELINE_BEGIN;

    // A tile as `rows` rows of 64 elements, of which row r begins at from[r * stride];
    // `inside_rows` and `inside` say how many rows and elements of a row exist.
    auto copy = [&](unsigned to, const T* from, int rows, int stride, int inside_rows, int inside) {
        const int chunk = threadIdx.x % 8;
#pragma unroll
        for (int i = 0; i < rows / (THREADS / 8); ++i) {
            const int r = i * (THREADS / 8) + threadIdx.x / 8;
            copy_chunk<8, true>(to + r * 128 + (chunk ^ r % 8) * 16,
                                from + (size_t)r * stride + chunk * 8,
                                r < inside_rows ? inside - chunk * 8 : 0);
        }
    };
    auto fetch = [&](int step) {
        const unsigned a = tiles + step % STAGES * STAGE_BYTES, b = a + A_BYTES;
        const int k = step * BK;
        if (step < steps) {
            copy(a, A + (size_t)row0 * K + k, BM, K, M - row0, K - k);
            if constexpr (B_BY_ROWS) {
#pragma unroll
                for (int n = 0; n < BN; n += 64)
                    copy(b + n * 128, B + (size_t)k * N + col0 + n, BK, N, K - k, N - col0 - n);
            } else {
                copy(b, B + (size_t)col0 * K + k, BN, K, N - col0, K - k);
            }
        }
        copies_commit();
    };

    MARK(LOAD);
    for (int s = 0; s < AHEAD; ++s) fetch(s);
    float sum[BN / 2] = {};
    for (int step = 0; step < steps; ++step) {
        MARK(WAIT);
        copies_wait<AHEAD - 1>();
        fence_async_proxy();  // what this thread's copies wrote, wgmma may read
        __syncthreads();      // everyone's copies, and everyone's products of the step before
        MARK(COMPUTE);
        const unsigned a = tiles + step % STAGES * STAGE_BYTES + warpgroup * 64 * 128;
        const unsigned b = tiles + step % STAGES * STAGE_BYTES + A_BYTES;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16)
            wgmma<BN, T, B_BY_ROWS>(sum, k_major(a + k * 2),
                                    B_BY_ROWS ? n_major(b + k * 128, BK) : k_major(b + k * 2));
        wgmma_commit();
        MARK(LOAD);
        fetch(step + AHEAD);
        MARK(COMPUTE);
        wgmma_wait<IN_FLIGHT>();
    }
    wgmma_wait<0>();

    MARK(STORE);
    update_fragment(C, M, N, row0 + threadIdx.x / 32 * 16, col0, alpha, sum, beta);
    TIMELINE_END;
}
