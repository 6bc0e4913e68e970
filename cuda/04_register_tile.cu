// 04: one thread computes a tile of C, TM x TN elements: an outer product for every k.
//
// Changes:    TM floats of As and TN of Bs in registers serve TM * TN multiply-adds.
// Bottleneck: 03's reads of shared memory, more than one float for every multiply-add.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN / TN; any M, N, K.
// Runs on:    sm_75 and later.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM / TM * (BN / TN), 2)
register_tile(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int COLS = BN / TN, THREADS = BM / TM * COLS;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    static_assert(THREADS % BK == 0 && THREADS % BN == 0, "a thread stays in one column of each");
    static_assert(BM % A_STEP == 0 && BK % B_STEP == 0, "and all load equally many floats");
    __shared__ float As[BM][BK], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int ak = tid % BK, am = tid / BK;  // the first float of each tile that this thread loads:
    const int bn = tid % BN, bk = tid / BN;  // the next ones are A_STEP and B_STEP rows below
    const int tx = tid % COLS * TN;  // the thread's first column in the tile of C,
    const int ty = tid / COLS * TM;  // and its first row
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
            for (int i = 0; i < TM; ++i) a_k[i] = As[ty + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_k[j] = Bs[k][tx + j];
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
        const int row = row0 + ty + i;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; ++j)
            if (col + j < N)
                update(&C[(size_t)row * N + col + j], alpha, sum[i][j], beta);
    }
    TIMELINE_END;
}
