// 07: the register tile, with four floats in every load and store.
//
// Changes:    global and shared memory are read and written 128 bits at a time; the tile of A is
//             transposed on its way into shared memory, so that a column of A can be read so too.
// Bottleneck: 06's loads, one instruction for each float.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN / TN; any M, N, K. VEC = 4 asks
//             for N and K that are multiples of 4 and for pointers aligned to 16 bytes; VEC = 1 for
//             nothing.
// Runs on:    sm_75 and later.
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ void __launch_bounds__(BM / TM * (BN / TN), VEC == 4 ? 2 : 1)
vectorized(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int THREADS = BM / TM * (BN / TN);
    constexpr int A_FLOATS = BM * BK / THREADS, B_FLOATS = BK * BN / THREADS;
    constexpr int SECTOR = 8 / VEC;  // accesses that make a sector of 8 floats
    // Four floats of padding put the parts of a sector, once transposed, into different banks.
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN];
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    // A thread owns groups of 4×4 elements, so many rows and columns apart.
    constexpr int ROWS = 4 * BM / TM, COLS = 4 * BN / TN;
    const int ty = threadIdx.x / (BN / TN) * 4, tx = threadIdx.x % (BN / TN) * 4;
    TIMELINE_BEGIN;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        MARK(LOAD);
        float a[A_FLOATS], b[B_FLOATS];
#pragma unroll
        for (int i = 0; i < A_FLOATS; i += VEC) {
            const int v = threadIdx.x + i / VEC * THREADS;
            const int row = row0 + v / SECTOR % BM, k = k0 + v % SECTOR * VEC + v / SECTOR / BM * 8;
            load<VEC>(&a[i], &A[(size_t)row * K + k], row < M && k < K);
        }
#pragma unroll
        for (int i = 0; i < B_FLOATS; i += VEC) {
            const int v = threadIdx.x + i / VEC * THREADS;
            const int k = k0 + v / (BN / VEC), col = col0 + v % (BN / VEC) * VEC;
            load<VEC>(&b[i], &B[(size_t)k * N + col], k < K && col < N);
        }
        MARK_ARRIVAL(a[0], a[A_FLOATS - 1], b[0], b[B_FLOATS - 1]);
#pragma unroll
        for (int i = 0; i < A_FLOATS; ++i) {
            const int v = threadIdx.x + i / VEC * THREADS;
            As[v % SECTOR * VEC + v / SECTOR / BM * 8 + i % VEC][v / SECTOR % BM] = a[i];
        }
#pragma unroll
        for (int i = 0; i < B_FLOATS; i += VEC) {
            const int v = threadIdx.x + i / VEC * THREADS;
            store<VEC>(&Bs[v / (BN / VEC)][v % (BN / VEC) * VEC], &b[i]);
        }
        MARK(BARRIER);
        __syncthreads();

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4) load<4>(&a[m], &As[k][ty + m / 4 * ROWS], true);
#pragma unroll
            for (int n = 0; n < TN; n += 4) load<4>(&b[n], &Bs[k][tx + n / 4 * COLS], true);
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; ++n) sum[m][n] += a[m] * b[n];
        }
        MARK(BARRIER);
        __syncthreads();
    }

    MARK(STORE);
#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; n += VEC) {
            const int row = row0 + ty + m / 4 * ROWS + m % 4;
            const int col = col0 + tx + n / 4 * COLS + n % 4;
            if (row < M && col < N)
                update<VEC>(&C[(size_t)row * N + col], alpha, &sum[m][n], beta);
        }
    TIMELINE_END;
}
