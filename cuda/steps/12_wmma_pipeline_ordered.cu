// 12's at_once and staged in an order that ptxas keeps.
//
// Changes:    a __syncwarp after the loads, over which ptxas moves no access to memory, and one
//             between products and stores. In 12 it issues loads behind the products of staged.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K.
// Runs on:    sm_75 and later.
//
// STAGED: products stand between the loads and the stores of what they loaded; else behind both.
// BLOCKS: blocks that the compiler must leave registers for on one SM.
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

template <int BM, int BN, int BK, int WM, int WN, bool STAGED, int BLOCKS>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), BLOCKS)
wmma_pipeline_ordered(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS;
    constexpr int FM = WM / 16, FN = WN / 16;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_STEP * BK == THREADS && B_STEP * BN == THREADS && BM % A_STEP == 0);
    union Shared {
        struct {
            half A[2][BM][BK + PAD], B[2][BK][BN + PAD];
        } tiles;
        float slices[WARPS][16 * (WN + PAD)];  // when the tiles are no longer needed
    };
    __shared__ __align__(32) Shared shared;
    // As 12 has it for its roles: without the remainder ptxas makes other code of either order.
    const int tid = threadIdx.x % THREADS, warp = tid / 32;
    const int am = tid / BK, ak = tid % BK, bk = tid / BN, bn = tid % BN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    TIMELINE_BEGIN;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    Pack<1> a[A_LOADS], b[B_LOADS];
    auto fetch = [&](int left) {  // the next tiles, of which `left` of K lie inside the matrices
        MARK(LOAD);
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const bool inside = row0 + am + i * A_STEP < M && ak < left;
            a[i] = load<1>(&from_a[(size_t)(i * A_STEP) * K], inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const bool inside = bk + i * B_STEP < left && col0 + bn < N;
            b[i] = load<1>(&from_b[(size_t)(i * B_STEP) * N], inside);
        }
        from_a += BK;
        from_b += (size_t)BK * N;
    };
    auto put = [&](int buffer) {
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            store<1>(&shared.tiles.A[buffer][am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            store<1>(&shared.tiles.B[buffer][bk + i * B_STEP][bn], b[i]);
    };
    Sum sum[FM][FN];
    auto multiply = [&](int buffer) {
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
    };
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    fetch(K);
    put(0);
    MARK(BARRIER);
    __syncthreads();
    int buffer = 0;
    for (int left = K; left > 0; left -= BK) {
        fetch(left - BK);
        __syncwarp();  // every load has been issued: ptxas moves none over it
        if (STAGED) multiply(buffer);
        else put(buffer ^ 1);
        __syncwarp();
        if (STAGED) put(buffer ^ 1);
        else multiply(buffer);
        MARK(BARRIER);
        __syncthreads();  // the next tiles are whole, and everyone has read the present ones
        buffer ^= 1;
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < FM; ++i)
        update_slice<1>(
            C, M, N, row0 + ty + 16 * i, col0 + tx, alpha, sum[i], beta, shared.slices[warp]);
    TIMELINE_END;
}
