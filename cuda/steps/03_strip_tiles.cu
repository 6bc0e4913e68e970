// Between 02 and 03: strips in tiles of any size, of which a thread loads as many floats as it takes.
//
// Launch:  grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN; any M, N, K.
// Runs on: sm_75 and later.
//
// TM: with 1 a thread has one element, as in 02; with 8 a strip, as in 03.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int BM, int BN, int BK, int TM>
__global__ void __launch_bounds__(BM / TM * BN)
strip_tiles(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int THREADS = BM / TM * BN;
    constexpr int FLOATS_A = BM * BK / THREADS, FLOATS_B = BK * BN / THREADS;  // a thread loads
    static_assert(THREADS * FLOATS_A == BM * BK && THREADS * FLOATS_B == BK * BN, "no rest");
    __shared__ float As[BM][BK], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int tx = tid % BN, ty = tid / BN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    TIMELINE_BEGIN;

    float sum[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        MARK(LOAD);
        // Outside the matrices the tiles hold zeros, which add nothing to the sum.
        float a[FLOATS_A], b[FLOATS_B];
#pragma unroll
        for (int i = 0; i < FLOATS_A; ++i) {
            const int m = (tid + i * THREADS) / BK, k = (tid + i * THREADS) % BK;
            a[i] = row0 + m < M && k0 + k < K ? A[(size_t)(row0 + m) * K + k0 + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < FLOATS_B; ++i) {
            const int k = (tid + i * THREADS) / BN, n = (tid + i * THREADS) % BN;
            b[i] = k0 + k < K && col0 + n < N ? B[(size_t)(k0 + k) * N + col0 + n] : 0.0f;
        }
        MARK_ARRIVAL(a[FLOATS_A - 1], b[FLOATS_B - 1]);
#pragma unroll
        for (int i = 0; i < FLOATS_A; ++i)
            As[(tid + i * THREADS) / BK][(tid + i * THREADS) % BK] = a[i];
#pragma unroll
        for (int i = 0; i < FLOATS_B; ++i)
            Bs[(tid + i * THREADS) / BN][(tid + i * THREADS) % BN] = b[i];
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float b_k = Bs[k][tx];
#pragma unroll
            for (int i = 0; i < TM; ++i) sum[i] += As[ty * TM + i][k] * b_k;
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    const int col = col0 + tx;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + ty * TM + i;
        if (row < M && col < N) update(&C[(size_t)row * N + col], alpha, sum[i], beta);
    }
    TIMELINE_END;
}
