// 11: a block stages its tiles of A and B in shared memory, and warps load their fragments there.
//
// Changes:    a tile of each matrix is read from global memory once a block, not once a warp.
// Bottleneck: 10's traffic: every warp fetches its own copy of what its neighbours use too.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 32 bytes, and stores
//             whole fragments of C; VEC = 1 asks for nothing.
// Runs on:    sm_75 and later.
//
// PADDING: halves behind each row of a tile. 8 of them let the rows of a fragment meet different
//          banks; 0 leaves them out.
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC, int PADDING>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
wmma_shared(int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN), FM = WM / 16, FN = WN / 16;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_STEP * BK == THREADS && B_STEP * BN == THREADS && BM % A_STEP == 0);
    __shared__ __align__(32) half As[BM][BK + PADDING], Bs[BK][BN + PADDING];
    __shared__ __align__(32) float edges[THREADS / 32][EDGE];
    const int tid = threadIdx.x, warp = tid / 32;
    const int am = tid / BK, ak = tid % BK, bk = tid / BN, bn = tid % BN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    TIMELINE_BEGIN;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    Sum sum[FM][FN];
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    for (int left = K; left > 0; left -= BK) {
        MARK(LOAD);
        Pack<1> a[A_LOADS], b[B_LOADS];
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
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) store<1>(&As[am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<1>(&Bs[bk + i * B_STEP][bn], b[i]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            FragmentA a_k[FM];
            FragmentB b_k[FN];
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a_k[i], &As[ty + 16 * i][k], BK + PADDING);
#pragma unroll
            for (int j = 0; j < FN; ++j)
                wmma::load_matrix_sync(b_k[j], &Bs[k][tx + 16 * j], BN + PADDING);
#pragma unroll
            for (int i = 0; i < FM; ++i)
#pragma unroll
                for (int j = 0; j < FN; ++j) wmma::mma_sync(sum[i][j], a_k[i], b_k[j], sum[i][j]);
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                update_fragment<VEC == 8>(C, M, N, row, col, alpha, sum[i][j], beta, edges[warp]);
        }
    TIMELINE_END;
}
