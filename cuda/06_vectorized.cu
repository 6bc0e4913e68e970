// 06: the register tile, with four floats in every load and store.
//
// Changes:    global and shared memory are read and written 128 bits at a time; the tile of A is
//             transposed on its way in, so that a thread's rows lie side by side for each k.
// Bottleneck: 05's loads, an instruction for nearly every float.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN / TN; any M, N, K. VEC = 4 asks
//             for N and K that are multiples of 4 and pointers aligned to 16 bytes; VEC = 1 for
//             nothing.
// Runs on:    sm_75 and later.
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int TM, int TN, int VEC>
__global__ void __launch_bounds__(BM / TM * (BN / TN), 2)
vectorized(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int ROWS = BM / TM, COLS = BN / TN, THREADS = ROWS * COLS;
    constexpr int ROW_STEP = 4 * ROWS, COL_STEP = 4 * COLS;  // from one group of 4×4 to the next
    constexpr int SECTOR = 8 / VEC;  // accesses that make a sector of 8 floats
    constexpr int A_STEP = THREADS / SECTOR, B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM * BK / VEC / THREADS, B_LOADS = BK * BN / VEC / THREADS;
    static_assert(BM * 8 % (VEC * THREADS) == 0 && THREADS % (BN / VEC) == 0);
    // Four floats of padding: the parts of a sector, once transposed, meet different banks.
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int ak = tid % SECTOR * VEC, am = tid / SECTOR;  // the first floats that this thread
    const int bn = tid % (BN / VEC) * VEC, bk = tid / (BN / VEC);  // loads of each tile
    const int tx = tid % COLS * 4;  // the thread's first column in the tile of C,
    const int ty = tid / COLS * 4;  // and its first row
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    TIMELINE_BEGIN;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        MARK(LOAD);
        // Outside the matrices the tiles hold zeros, which add nothing to the sum.
        float a[A_LOADS * VEC], b[B_LOADS * VEC];
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {  // a column of sectors, then the one beside it
            const int row = row0 + am + i * A_STEP % BM, k = k0 + ak + i * A_STEP / BM * 8;
            load<VEC>(&a[i * VEC], &A[(size_t)row * K + k], row < M && k < K);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int k = k0 + bk + i * B_STEP, col = col0 + bn;
            load<VEC>(&b[i * VEC], &B[(size_t)k * N + col], k < K && col < N);
        }
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS * VEC; ++i)
            As[ak + i / VEC * A_STEP / BM * 8 + i % VEC][am + i / VEC * A_STEP % BM] = a[i];
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<VEC>(&Bs[bk + i * B_STEP][bn], &b[i * VEC]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_k[TM], b_k[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) load<4>(&a_k[i], &As[k][ty + i / 4 * ROW_STEP]);
#pragma unroll
            for (int j = 0; j < TN; j += 4) load<4>(&b_k[j], &Bs[k][tx + j / 4 * COL_STEP]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_k[i] * b_k[j];
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + ty + i / 4 * ROW_STEP + i % 4;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += VEC) {
            const int col = col0 + tx + j / 4 * COL_STEP + j % 4;
            if (col < N) update<VEC>(&C[(size_t)row * N + col], alpha, &sum[i][j], beta);
        }
    }
    TIMELINE_END;
}
