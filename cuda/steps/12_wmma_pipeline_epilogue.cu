// Between 11 and 12: 11 with 12's epilogue, and nothing loaded ahead.
//
// Changes:    sums are laid down in shared memory and written to C row by row, where 11 stores
//             whole fragments.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K.
// Runs on:    sm_75 and later.
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

template <int BM, int BN, int BK, int WM, int WN>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
wmma_pipeline_epilogue(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN), FM = WM / 16, FN = WN / 16;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_STEP * BK == THREADS && B_STEP * BN == THREADS && BM % A_STEP == 0);
    union Shared {
        struct {
            half A[BM][BK + PAD], B[BK][BN + PAD];
        } tiles;
        float slices[THREADS / 32][16 * (WN + PAD)];  // when the tiles are no longer needed
    };
    __shared__ __align__(32) Shared shared;
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
        for (int i = 0; i < A_LOADS; ++i) store<1>(&shared.tiles.A[am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<1>(&shared.tiles.B[bk + i * B_STEP][bn], b[i]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            FragmentA a_k[FM];
            FragmentB b_k[FN];
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a_k[i], &shared.tiles.A[ty + 16 * i][k], BK + PAD);
#pragma unroll
            for (int j = 0; j < FN; ++j)
                wmma::load_matrix_sync(b_k[j], &shared.tiles.B[k][tx + 16 * j], BN + PAD);
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
        update_slice<1>(
            C, M, N, row0 + ty + 16 * i, col0 + tx, alpha, sum[i], beta, shared.slices[warp]);
    TIMELINE_END;
}
