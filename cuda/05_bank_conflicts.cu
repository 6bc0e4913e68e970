// 05: the register tile, its tiles and threads laid out so that their accesses meet in fewer banks.
//
// Changes:    which rows and columns a thread owns, and the length of a row of As.
// Bottleneck: 04's bank conflicts, wavefronts beyond those that a load's bytes need.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN / TN; any M, N, K.
// Runs on:    sm_75 and later.
//
// SPREAD = true:  a thread's rows and columns lie apart, so that its neighbours' are next to them.
// SPREAD = false: they lie together, as in 04, and neighbours' reads of Bs meet in the same banks.
// PAD:            unused floats at the end of each row of As, which shift the next by as many banks.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int BM, int BN, int BK, int TM, int TN, bool SPREAD, int PAD>
__global__ void __launch_bounds__(BM / TM * (BN / TN), 2)
bank_conflicts(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int ROWS = BM / TM, COLS = BN / TN, THREADS = ROWS * COLS;
    constexpr int ROW_STEP = SPREAD ? ROWS : 1, COL_STEP = SPREAD ? COLS : 1;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    static_assert(THREADS % BK == 0 && THREADS % BN == 0, "a thread stays in one column of each");
    static_assert(BM % A_STEP == 0 && BK % B_STEP == 0, "and all load equally many floats");
    __shared__ float As[BM][BK + PAD], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int ak = tid % BK, am = tid / BK;  // the first float of each tile that this thread loads:
    const int bn = tid % BN, bk = tid / BN;  // the next ones are A_STEP and B_STEP rows below
    const int tx = tid % COLS * (SPREAD ? 1 : TN);  // the thread's first column in the tile of C,
    const int ty = tid / COLS * (SPREAD ? 1 : TM);  // and its first row
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    TIMELINE_BEGIN;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        MARK(LOAD);
        // Outside the matrices the tiles hold zeros, which add nothing to the sum.
        float a[BM / A_STEP], b[BK / B_STEP];
#pragma unroll
        for (int i = 0; i < BM / A_STEP; ++i) {
            const int row = row0 + am + i * A_STEP, k = k0 + ak;
            a[i] = row < M && k < K ? A[(size_t)row * K + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK / B_STEP; ++i) {
            const int k = k0 + bk + i * B_STEP, col = col0 + bn;
            b[i] = k < K && col < N ? B[(size_t)k * N + col] : 0.0f;
        }
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < BM / A_STEP; ++i) As[am + i * A_STEP][ak] = a[i];
#pragma unroll
        for (int i = 0; i < BK / B_STEP; ++i) Bs[bk + i * B_STEP][bn] = b[i];
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll 2  // two at once: neighbours in a row of As, which one load takes
        for (int k = 0; k < BK; ++k) {
            float a_k[TM], b_k[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a_k[i] = As[ty + i * ROW_STEP][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_k[j] = Bs[k][tx + j * COL_STEP];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_k[i] * b_k[j];
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    const int col = col0 + tx;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + ty + i * ROW_STEP;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; ++j)
            if (col + j * COL_STEP < N)
                update(&C[(size_t)row * N + col + j * COL_STEP], alpha, sum[i][j], beta);
    }
    TIMELINE_END;
}
