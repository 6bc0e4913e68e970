// 07: while a block computes from one pair of tiles, the floats of the next ones are on their way.
//
// Changes:    the next tiles are loaded into registers before the present ones are used, and stored
//             to shared memory after; two buffers there, and one barrier a step.
// Bottleneck: 06's waits for global memory.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block BM / TM * BN / TN; any M, N, K. VEC = 4 asks
//             for N and K that are multiples of 4 and pointers aligned to 16 bytes; VEC = 1 for
//             nothing.
// Runs on:    sm_75 and later.
//
// STAGED:  loaded values wait in registers while the block computes; otherwise they are stored at
//          once, as in 06.
// BUFFERS: tiles in shared memory: with 2, one barrier a step is enough.
// BLOCKS:  blocks that the compiler must leave registers for on one SM.
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int TM, int TN, bool STAGED, int BUFFERS, int BLOCKS, int VEC>
__global__ void __launch_bounds__(BM / TM * (BN / TN), BLOCKS)
double_buffer(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int ROWS = BM / TM, COLS = BN / TN, THREADS = ROWS * COLS;
    constexpr int ROW_STEP = 4 * ROWS, COL_STEP = 4 * COLS;  // from one group of 4×4 to the next
    constexpr int SECTOR = 8 / VEC;  // accesses that make a sector of 8 floats
    constexpr int A_STEP = THREADS / SECTOR, B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM * BK / VEC / THREADS, B_LOADS = BK * BN / VEC / THREADS;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    // Four floats of padding: the parts of a sector, once transposed, meet different banks.
    __shared__ __align__(16) float As[BUFFERS][BK][BM + 4], Bs[BUFFERS][BK][BN];
    const int tid = threadIdx.x;
    const int am = tid / SECTOR % BM, ak = tid % SECTOR * VEC + tid / SECTOR / BM * 8;
    const int bn = tid % (BN / VEC) * VEC, bk = tid / (BN / VEC);
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int tx = tid % COLS * 4;  // the thread's first column in the tile of C,
    const int ty = tid / COLS * 4;  // and its first row
    TIMELINE_BEGIN;

    const float* from_a = &A[(size_t)(row0 + am) * K + ak];
    const float* from_b = &B[(size_t)bk * N + col0 + bn];
    float a[A_LOADS * VEC], b[B_LOADS * VEC];
    auto fetch = [&](int left) {  // the next tiles, of which `left` of K lie inside the matrices
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int row = i * A_STEP % BM, k = i * A_STEP / BM * 8;
            const bool inside = row0 + am + row < M && ak + k < left;
            load<VEC>(&a[i * VEC], &from_a[(size_t)row * K + k], inside);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const bool inside = bk + i * B_STEP < left && col0 + bn < N;
            load<VEC>(&b[i * VEC], &from_b[(size_t)(i * B_STEP) * N], inside);
        }
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    MARK(LOAD);
    if (STAGED) fetch(K);
    float sum[TM][TN] = {};
    int buffer = 0;
    for (int left = K; left > 0; left -= BK) {
        if (!STAGED) fetch(left);  // a store needs its value: the warp waits here
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS * VEC; ++i) {
            const int row = i / VEC * A_STEP % BM, k = i / VEC * A_STEP / BM * 8 + i % VEC;
            As[buffer][ak + k][am + row] = a[i];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store<VEC>(&Bs[buffer][bk + i * B_STEP][bn], &b[i * VEC]);
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them

        MARK(LOAD);
        if (STAGED) fetch(left - BK);  // the values arrive while the warp computes
        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_k[TM], b_k[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) load<4>(&a_k[i], &As[buffer][k][ty + i / 4 * ROW_STEP]);
#pragma unroll
            for (int j = 0; j < TN; j += 4) load<4>(&b_k[j], &Bs[buffer][k][tx + j / 4 * COL_STEP]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_k[i] * b_k[j];
        }
        if (BUFFERS == 2) {
            buffer ^= 1;  // slower warps may read the old one until the next barrier
        } else {
            MARK(BARRIER);
            __syncthreads();  // everyone has read them before they are overwritten
        }
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
