// Between 06 and 08: one buffer, nothing loaded ahead; threads in the order of 06, or warps that own
// rectangles of C.
//
// Launch:  that of 08.
// Runs on: sm_75 and later.
#include "timeline.cuh"
#include "vector.cuh"

enum Order {
    BLOCK,   // threads row by row over the tile of the block, as in 06
    ROWS,    // lanes row by row over the tile of their warp
    PAIRED,  // lane bit 0 counts columns and bit 1 rows, as in 08
};

template <int BM, int BN, int BK, int WM, int WN, int LANES, Order ORDER, int BLOCKS,
          int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), BLOCKS)
warp_tile_waiting(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int LM = LANES, LN = 32 / LANES, TM = WM / LM, TN = WN / LN;
    // From one group of 4×4 to the next.
    constexpr int ROW_STEP = 4 * (ORDER == BLOCK ? BM / TM : LM);
    constexpr int COL_STEP = 4 * (ORDER == BLOCK ? BN / TN : LN);
    constexpr int SECTOR = 8 / VEC;  // accesses that make a sector of 8 floats
    constexpr int A_STEP = THREADS / SECTOR, B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM * BK / VEC / THREADS, B_LOADS = BK * BN / VEC / THREADS;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    // Four floats of padding: the parts of a sector, once transposed, meet different banks.
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN];
    const int tid = threadIdx.x;
    const int am = tid / SECTOR % BM, ak = tid % SECTOR * VEC + tid / SECTOR / BM * 8;
    const int bn = tid % (BN / VEC) * VEC, bk = tid / (BN / VEC);
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    // The warp's place in the block's tile of C, and the lane's in the warp's.
    const int warp = tid / 32, lane = tid % 32;
    const int x = ORDER == PAIRED ? lane % 2 + lane / 4 % (LN / 2) * 2 : lane % LN;
    const int y = ORDER == PAIRED ? lane / 2 % 2 + lane / (2 * LN) * 2 : lane / LN;
    const int tx = ORDER == BLOCK ? tid % (BN / TN) * 4 : warp % (BN / WN) * WN + x * 4;
    const int ty = ORDER == BLOCK ? tid / (BN / TN) * 4 : warp / (BN / WN) * WM + y * 4;
    TIMELINE_BEGIN;

    const float* from_a = &A[(size_t)(row0 + am) * K + ak];
    const float* from_b = &B[(size_t)bk * N + col0 + bn];
    float a[A_LOADS * VEC], b[B_LOADS * VEC];
    auto fetch = [&](int left) {  // the tiles, of which `left` of K lie inside the matrices
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

    float sum[TM][TN] = {};
    for (int left = K; left > 0; left -= BK) {
        MARK(LOAD);
        fetch(left);
        MARK_ARRIVAL(a, b);
#pragma unroll
        for (int i = 0; i < A_LOADS * VEC; ++i) {
            const int row = i / VEC * A_STEP % BM, k = i / VEC * A_STEP / BM * 8 + i % VEC;
            As[ak + k][am + row] = a[i];
        }
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
