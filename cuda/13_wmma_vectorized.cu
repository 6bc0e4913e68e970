// 13: the pipeline with eight halves in every load and four floats in every store.
//
// Changes:    A and B are read, and C written, 128 bits at a time.
// Bottleneck: 12's loads: an instruction for every 64 bytes of a tile.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing.
// Runs on:    sm_75 and later.
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
wmma_vectorized(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS;
    constexpr int FM = WM / 16, FN = WN / 16;
    // The vectors of a tile; where they are fewer than the threads, some threads have none.
    constexpr int A_VECTORS = BM * BK / VEC, B_VECTORS = BK * BN / VEC;
    constexpr int A_LOADS = (A_VECTORS + THREADS - 1) / THREADS;
    constexpr int B_LOADS = (B_VECTORS + THREADS - 1) / THREADS;
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    static_assert(THREADS % (BK / VEC) == 0 && THREADS % (BN / VEC) == 0);
    union Shared {
        struct {
            half A[2][BM][BK + PAD], B[2][BK][BN + PAD];
        } tiles;
        float slices[WARPS][16 * (WN + PAD)];  // when the tiles are no longer needed
    };
    __shared__ __align__(32) Shared shared;
    const int tid = threadIdx.x, warp = tid / 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
    const bool has_a = A_VECTORS >= THREADS || tid < A_VECTORS;
    const bool has_b = B_VECTORS >= THREADS || tid < B_VECTORS;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    TIMELINE_BEGIN;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    Pack<VEC> a[A_LOADS], b[B_LOADS];
    auto fetch = [&](int left) {  // the next tiles, of which `left` of K lie inside the matrices
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const bool inside = has_a && row0 + am + i * A_STEP < M && ak < left;
            a[i] = load<VEC>(&from_a[(size_t)(i * A_STEP) * K], inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const bool inside = has_b && bk + i * B_STEP < left && col0 + bn < N;
            b[i] = load<VEC>(&from_b[(size_t)(i * B_STEP) * N], inside);
        }
        from_a += BK;
        from_b += (size_t)BK * N;
    };
    auto put = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            if (has_a) store<VEC>(&shared.tiles.A[buffer][am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            if (has_b) store<VEC>(&shared.tiles.B[buffer][bk + i * B_STEP][bn], b[i]);
    };
    Sum sum[FM][FN];
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    MARK(LOAD);
    fetch(K);
    MARK_ARRIVAL(a, b);
    put(0);
    MARK(BARRIER);
    __syncthreads();
    int buffer = 0;
    for (int left = K; left > 0; left -= BK) {
        MARK(LOAD);
        fetch(left - BK);
        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            FragmentA a_k[FM];
            FragmentB b_k[FN];
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a_k[i], &shared.tiles.A[buffer][ty + 16 * i][k], BK + PAD);
#pragma unroll
            for (int j = 0; j < FN; ++j)
                wmma::load_matrix_sync(b_k[j], &shared.tiles.B[buffer][k][tx + 16 * j], BN + PAD);
#pragma unroll
            for (int i = 0; i < FM; ++i)
#pragma unroll
                for (int j = 0; j < FN; ++j) wmma::mma_sync(sum[i][j], a_k[i], b_k[j], sum[i][j]);
        }
        MARK_ARRIVAL(a, b);
        put(buffer ^ 1);
        MARK(BARRIER);
        __syncthreads();  // the next tiles are whole, and everyone has read the present ones
        buffer ^= 1;
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < FM; ++i)
        update_slice<VEC == 8 ? 4 : 1>(
            C, M, N, row0 + ty + 16 * i, col0 + tx, alpha, sum[i], beta, shared.slices[warp]);
    TIMELINE_END;
}
