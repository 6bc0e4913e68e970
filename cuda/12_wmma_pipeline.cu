// 12: two tiles of A and two of B, and an epilogue that goes through shared memory.
//
// Changes:    the next tiles have a buffer of their own, and may be loaded while the present ones
//             are multiplied; sums are laid down in shared memory and written to C row by row.
// Bottleneck: 11's wait for global memory between a tile and the next.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN, with ROLES twice
//             that; any M, N, K.
// Runs on:    sm_75 and later.
//
// LOADS:  AT_ONCE: what was loaded is stored to shared memory at once, as the worklog has it.
//         STAGED:  it stays in registers until the present tiles have been multiplied.
//         ROLES:   half of the warps load, the other half multiply.
// BLOCKS: blocks that the compiler must leave registers for on one SM; 0: as it sees fit.
#include "barrier.cuh"
#include "halves.cuh"
#include "timeline.cuh"
#include "wmma.cuh"

enum Loads { AT_ONCE, STAGED, ROLES };

// Barriers: a buffer is full or empty; all tiles are used.
enum Barrier { FULL = 1, EMPTY = 3, DONE = 5 };

template <int BM, int BN, int BK, int WM, int WN, Loads LOADS, int BLOCKS>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN) * (LOADS == ROLES ? 2 : 1), BLOCKS)
wmma_pipeline(int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    // Threads that multiply; as many load, be they the same or others.
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS;
    constexpr int FM = WM / 16, FN = WN / 16;
    constexpr int A_STEP = THREADS / BK, B_STEP = THREADS / BN;
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_STEP * BK == THREADS && B_STEP * BN == THREADS && BM % A_STEP == 0);
    union Shared {
        struct {
            half A[2][BM][BK + PAD], B[2][BK][BN + PAD];
        } tiles;
        float slices[WARPS][16 * (WN + PAD)];  // when the tiles are no longer needed
    };
    __shared__ __align__(32) Shared shared;
    // A remainder only where twice the warps stand: it costs the others 18 registers.
    const int tid = LOADS == ROLES ? threadIdx.x % THREADS : threadIdx.x, warp = tid / 32;
    const int am = tid / BK, ak = tid % BK, bk = tid / BN, bn = tid % BN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    TIMELINE_BEGIN;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    Pack<1> a[A_LOADS], b[B_LOADS];
    auto fetch = [&](int left) {  // the next tiles, of which `left` of K lie inside the matrices
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
    };
    auto put = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i)
            store<1>(&shared.tiles.A[buffer][am + i * A_STEP][ak], a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i)
            store<1>(&shared.tiles.B[buffer][bk + i * B_STEP][bn], b[i]);
    };
    Sum sum[FM][FN];
    auto multiply = [&](int buffer) {
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            FragmentA a_k[FM];
            FragmentB b_k[FN];
#pragma unroll
            for (int i = 0; i < FM; ++i)
                wmma::load_matrix_sync(a_k[i], &shared.tiles.A[buffer][ty + 16 * i][k], BK + PAD);
#pragma unroll
            for (int j = 0; j < FN; ++j)
                wmma::load_matrix_sync(b_k[j], &shared.tiles.B[buffer][k][tx + 16 * j], BN + PAD);
#pragma unroll
            for (int i = 0; i < FM; ++i)
#pragma unroll
                for (int j = 0; j < FN; ++j) wmma::mma_sync(sum[i][j], a_k[i], b_k[j], sum[i][j]);
        }
    };
#pragma unroll
    for (int i = 0; i < FM; ++i)
#pragma unroll
        for (int j = 0; j < FN; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    int buffer = 0;
    if (LOADS == ROLES && threadIdx.x >= THREADS) {  // these warps load
        for (int left = K; left > 0; left -= BK) {
            MARK(LOAD);
            fetch(left);
            MARK_ARRIVAL(a, b);
            MARK(BARRIER);
            // Two tiles lie ready; before the third, the others must be done with the first.
            if (K - left >= 2 * BK) barrier_sync(EMPTY + buffer, 2 * THREADS);
            put(buffer);
            barrier_arrive(FULL + buffer, 2 * THREADS);
            buffer ^= 1;
        }
        TIMELINE_END;
        return;
    }
    if (LOADS == ROLES) {  // and these multiply
        for (int left = K; left > 0; left -= BK) {
            MARK(BARRIER);
            barrier_sync(FULL + buffer, 2 * THREADS);
            MARK(COMPUTE);
            multiply(buffer);
            if (left > 2 * BK) barrier_arrive(EMPTY + buffer, 2 * THREADS);
            buffer ^= 1;
        }
        barrier_sync(DONE, THREADS);
    } else {
        MARK(LOAD);
        fetch(K);
        MARK_ARRIVAL(a, b);
        put(0);
        MARK(BARRIER);
        __syncthreads();
        for (int left = K; left > 0; left -= BK) {
            MARK(LOAD);
            fetch(left - BK);
            if (LOADS == AT_ONCE) {  // a store needs its value: the warp waits here
                MARK_ARRIVAL(a, b);
                put(buffer ^ 1);
            }
            MARK(COMPUTE);
            multiply(buffer);
            if (LOADS == STAGED) {  // or here, when it has multiplied
                MARK_ARRIVAL(a, b);
                put(buffer ^ 1);
            }
            MARK(BARRIER);
            __syncthreads();  // the next tiles are whole, and everyone has read the present ones
            buffer ^= 1;
        }
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < FM; ++i)
        update_slice<1>(
            C, M, N, row0 + ty + 16 * i, col0 + tx, alpha, sum[i], beta, shared.slices[warp]);
    TIMELINE_END;
}
