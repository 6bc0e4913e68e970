// 08: a warp owns a rectangle of C, and its lanes lie in it so that their loads share wavefronts.
//
// Changes:    block tile, warp tile, thread tile; lanes in pairs along both directions; the next
//             tile's floats fly while this one is computed.
// Bottleneck: 07's shared memory: four wavefronts for each load of B, where two can do.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 4
//             asks for N and K that are multiples of 4 and for pointers aligned to 16 bytes, VEC =
//             1 for nothing.
// Runs on:    sm_75 and later.
//
// LANES:   lanes of a warp along M; 32 / LANES lie along N.
// PAIRED:  lane bit 0 counts columns and bit 1 rows, so that every lane has a neighbour that wants
//          the same floats of A and one that wants the same of B. Otherwise row by row.
// BUFFERS: tiles in shared memory: with 2, one barrier a step is enough.
// BLOCKS:  blocks that the compiler must leave registers for on one SM.
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int WM, int WN, int LANES, bool PAIRED, int BUFFERS, int BLOCKS,
          int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), BLOCKS)
warp_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int A_LOADS = BM * BK / VEC / THREADS;
    constexpr int B_LOADS = BK * BN / VEC / THREADS;
    constexpr int SECTOR = 8 / VEC;  // accesses that make a sector of 8 floats
    static_assert(A_LOADS * THREADS * VEC == BM * BK && B_LOADS * THREADS * VEC == BK * BN);
    __shared__ __align__(16) float As[BUFFERS][BK][BM + 4], Bs[BUFFERS][BK][BN];
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    // The warp's place in the block's tile, and the lane's place in the warp's.
    constexpr int ROWS = 4 * LANES, COLS = 4 * (32 / LANES), TM = WM / LANES, TN = WN * LANES / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int y = PAIRED ? lane / 2 % 2 + lane / (64 / LANES) * 2 : lane / (32 / LANES);
    const int x = PAIRED ? lane % 2 + lane / 4 % (16 / LANES) * 2 : lane % (32 / LANES);
    const int ty = warp / (BN / WN) * WM + y * 4, tx = warp % (BN / WN) * WN + x * 4;
    TIMELINE_BEGIN;

    // Where this thread's first loads of a tile lie; the others are fixed distances away.
    const int a_row = threadIdx.x / SECTOR % BM, b_col = threadIdx.x % (BN / VEC) * VEC;
    const int a_k = threadIdx.x % SECTOR * VEC + threadIdx.x / SECTOR / BM * 8;
    const int b_k = threadIdx.x / (BN / VEC);
    const float* from_a = A + (size_t)(row0 + a_row) * K + a_k;
    const float* from_b = B + (size_t)b_k * N + col0 + b_col;
    float a[A_LOADS * VEC], b[B_LOADS * VEC];
    auto fetch = [&](int left) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int row = i * THREADS / SECTOR % BM, k = i * THREADS / SECTOR / BM * 8;
            load<VEC>(&a[i * VEC], &from_a[(size_t)row * K + k],
                      row0 + a_row + row < M && a_k + k < left);
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int k = i * THREADS / (BN / VEC);
            load<VEC>(&b[i * VEC], &from_b[(size_t)k * N], b_k + k < left && col0 + b_col < N);
        }
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    MARK(LOAD);
    fetch(K);
    float sum[TM][TN] = {};
    int buffer = 0;
    for (int left = K; left > 0; left -= BK) {
        MARK_ARRIVAL(a[0], a[A_LOADS * VEC - 1], b[0], b[B_LOADS * VEC - 1]);
#pragma unroll
        for (int i = 0; i < A_LOADS * VEC; ++i) {
            const int place = i / VEC * THREADS / SECTOR, k = a_k + place / BM * 8 + i % VEC;
            As[buffer][k][a_row + place % BM] = a[i];
        }
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int k = b_k + i * THREADS / (BN / VEC);
            store<VEC>(&Bs[buffer][k][b_col], &b[i * VEC]);
        }
        MARK(BARRIER);
        __syncthreads();

        MARK(LOAD);
        fetch(left - BK);  // where nothing is left it loads nothing
        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                load<4>(&a[m], &As[buffer][k][ty + m / 4 * ROWS], true);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                load<4>(&b[n], &Bs[buffer][k][tx + n / 4 * COLS], true);
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; ++n) sum[m][n] += a[m] * b[n];
        }
        if (BUFFERS == 2) {
            buffer ^= 1;  // whoever still reads this one is waited for at the next barrier
        } else {
            MARK(BARRIER);
            __syncthreads();
        }
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
