// 14_ldmatrix_wmma with the order of its copies fixed.
//
// Changes:    a __syncwarp between the loads of global memory and the stores of the tiles, over
//             which ptxas moves none of either.
// Launch:     as 14_ldmatrix_wmma.
// Runs on:    sm_75 and later.
//
// LATE:       a thread's last load stands behind its first store, where ptxas puts it in 14.
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC, bool LATE>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
ldmatrix_wmma_loads(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int FM = WM / 16, FN = WN / 16;  // fragments of 16×16 that make a warp's tile
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    union Shared {
        struct {
            half A[BM][BK + PAD], B[BK][BN + PAD];
        } tiles;
        float edges[THREADS / 32][EDGE];  // when the tiles are no longer needed
    };
    __shared__ __align__(32) Shared shared;
    const int tid = threadIdx.x, warp = tid / 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
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
        Pack<VEC> a[A_LOADS], b[B_LOADS];
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const bool inside = row0 + am + i * A_STEP < M && ak < left;
            a[i] = load<VEC>(&from_a[(size_t)(i * A_STEP) * K], inside);
        }
        auto load_b = [&](int i) {
            const bool inside = bk + i * B_STEP < left && col0 + bn < N;
            b[i] = load<VEC>(&from_b[(size_t)(i * B_STEP) * N], inside);
        };
#pragma unroll
        for (int i = 0; i < B_LOADS - LATE; ++i) load_b(i);
        if (LATE) store<VEC>(&shared.tiles.A[am][ak], a[0]);
        __syncwarp();  // ptxas moves no access to memory over it
        if (LATE) load_b(B_LOADS - 1);
        from_a += BK;
        from_b += (size_t)BK * N;
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = LATE; i < A_LOADS; ++i) store<VEC>(&shared.tiles.A[am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<VEC>(&shared.tiles.B[bk + i * B_STEP][bn], b[i]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            FragmentA a_k[FM];
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a_k[i], &shared.tiles.A[ty + 16 * i][k], BK + PAD);
#pragma unroll
            for (int j = 0; j < FN; ++j) {
                FragmentB b_k;
                wmma::load_matrix_sync(b_k, &shared.tiles.B[k][tx + 16 * j], BN + PAD);
#pragma unroll
                for (int i = 0; i < FM; ++i) wmma::mma_sync(sum[i][j], a_k[i], b_k, sum[i][j]);
            }
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
                update_fragment<VEC == 8>(
                    C, M, N, row, col, alpha, sum[i][j], beta, shared.edges[warp]);
        }
    TIMELINE_END;
}
