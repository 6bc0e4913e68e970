// 03: one thread computes a strip of C, TM elements of a column.
//
// Changes:    a float of Bs is loaded once and used TM times, from a register.
// Bottleneck: 02's reads of shared memory, two floats for every multiply-add.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN; any M, N, K.
// Runs on:    sm_75 and later.
//
// STRIPS_FIRST = false: neighbouring threads own neighbouring columns of C.
// STRIPS_FIRST = true:  they own neighbouring strips, whose rows of As meet in the same banks.
#include "epilogue.cuh"
#include "timeline.cuh"

template <int BM, int BN, int BK, int TM, bool STRIPS_FIRST>
__global__ void __launch_bounds__(BM / TM * BN)
strip(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int STRIPS = BM / TM;  // down the tile of C
    static_assert(BM * BK == STRIPS * BN && BK * BN == STRIPS * BN, "a float of each a thread");
    __shared__ float As[BM][BK], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int ak = tid % BK, am = tid / BK;  // the float of each tile that this thread loads
    const int bn = tid % BN, bk = tid / BN;
    const int tx = STRIPS_FIRST ? tid / STRIPS : tid % BN;  // its column in the tile of C,
    const int ty = STRIPS_FIRST ? tid % STRIPS : tid / BN;  // and its strip
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    TIMELINE_BEGIN;

    float sum[TM] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        MARK(LOAD);
        // Outside the matrices the tiles hold zeros, which add nothing to the sum.
        float a = row0 + am < M && k0 + ak < K ? A[(size_t)(row0 + am) * K + k0 + ak] : 0.0f;
        float b = k0 + bk < K && col0 + bn < N ? B[(size_t)(k0 + bk) * N + col0 + bn] : 0.0f;
        MARK_ARRIVAL(a, b);
        As[am][ak] = a;
        Bs[bk][bn] = b;
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
