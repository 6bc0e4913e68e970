// Between 08 and 09: copies in flight that take no registers; then without guards in the main loop,
// with fragments read a step ahead, with tiles in groups of rows.
//
// Launch:  grid (tiles), block 32 * BM / WM * BN / WN; any M, N, K. VEC as in 09.
// Runs on: sm_75 and later.
//
// GUARDED: each copy asks whether it lies inside the matrices, as in 08; otherwise rows and columns
//          outside are read from the last one inside, and the first step takes what K leaves over.
// AHEAD:   fragments of a step are read while the step before it is computed.
// GROUP:   rows of tiles that run side by side; 1 is the order of 08.
#include "copy.cuh"
#include "raster.cuh"
#include "timeline.cuh"

template <int BM, int BN, int BK, int WM, int WN, int STAGES, bool GUARDED, bool AHEAD, int GROUP,
          int BLOCKS, int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), RESIDENT<VEC, BLOCKS>)
fp32_limit_copies(
    int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int LM = 8, LN = 4, TM = WM / LM, TN = WN / LN;
    constexpr int ROW_STEP = 4 * LM, COL_STEP = 4 * LN;  // from one group of 4×4 to the next
    constexpr int A_COPIES = BM * BK / THREADS, A_STEP = THREADS / 8, ROWS = A_COPIES * 8 / BK;
    constexpr int B_COPIES = BK * BN / VEC / THREADS, B_STEP = THREADS / (BN / VEC);
    static_assert(A_COPIES * THREADS == BM * BK && B_COPIES * VEC * THREADS == BK * BN);
    static_assert(ROWS * BK == A_COPIES * 8);
    // Padded, so that the 8 floats of a sector, once transposed, meet different banks.
    struct Stage {
        float A[BK][BM + 4], B[BK][BN];
    };
    constexpr unsigned LAST = (STAGES - 1) * sizeof(Stage);  // stages are named by their offset
    extern __shared__ __align__(128) char shared[];  // so that copies of whole lines stay whole
    Stage& stage = *reinterpret_cast<Stage*>(shared);

    // What this thread copies, and where the lane lies: bit 0 counts columns and bit 1 rows.
    const int tid = threadIdx.x, ak = tid % 8, am = tid / 8;
    const int bn = tid % (BN / VEC) * VEC, bk = tid / (BN / VEC);
    const unsigned to_a = __cvta_generic_to_shared(&stage.A[ak][am]);
    const unsigned to_b = __cvta_generic_to_shared(&stage.B[bk][bn]);
    const int warp = tid / 32, lane = tid % 32;
    const int x = lane % 2 + lane / 4 % (LN / 2) * 2, y = lane / 2 % 2 + lane / (2 * LN) * 2;
    const int tx = warp % (BN / WN) * WN + x * 4, ty = warp / (BN / WN) * WM + y * 4;
    const char* const read_a = reinterpret_cast<const char*>(&stage.A[0][ty]);
    const char* const read_b = reinterpret_cast<const char*>(&stage.B[0][tx]);
    const int2 place = raster<GROUP>(blockIdx.x, (M + BM - 1) / BM, (N + BN - 1) / BN);
    const int row0 = place.x * BM, col0 = place.y * BN;
    TIMELINE_BEGIN;

    const int steps = max((K + BK - 1) / BK, 1);
    int rows[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        rows[i] = row0 + am + i * A_STEP;
        if (!GUARDED) rows[i] = min(rows[i], M - 1);
    }
    const int column = GUARDED ? col0 + bn : min(col0 + bn, N - VEC);
    const float* from_a = A + ak;
    const float* from_b = B + (size_t)bk * N + column;
    Copy<1> copies_a[A_COPIES];
    Copy<VEC> copies_b[B_COPIES];
    int left = K;
    auto fetch = [&](unsigned free, int valid) {  // the next tiles, of which `valid` of K are asked
        const bool whole = !GUARDED && valid == BK;
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i) {
            const int row = i % ROWS, k = i / ROWS * 8;
            copies_a[i].begin(to_a + free + (k * (BM + 4) + row * A_STEP) * 4,
                              from_a + (size_t)rows[row] * K + k,
                              whole || (ak + k < valid && (!GUARDED || rows[row] < M)));
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i) {
            const int k = i * B_STEP;
            copies_b[i].begin(to_b + free + k * BN * 4, from_b + (size_t)k * N,
                              whole || (bk + k < valid && (!GUARDED || column < N)));
        }
        const int walked = GUARDED ? BK : valid;
        from_a += walked, from_b += (size_t)walked * N, left -= walked;
    };
    auto arrive = [&] {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i) copies_a[i].finish();
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i) copies_b[i].finish();
        close_group();
    };
    MARK(LOAD);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps)
            fetch(s * sizeof(Stage), GUARDED ? left : s == 0 ? K - (steps - 1) * BK : BK);
        arrive();
    }

    float sum[TM][TN] = {}, a[2][TM], b[2][TN];
    auto read = [&](unsigned offset, int k) {  // the fragments of step k
        const float* A_k = reinterpret_cast<const float*>(read_a + offset) + k * (BM + 4);
        const float* B_k = reinterpret_cast<const float*>(read_b + offset) + k * BN;
#pragma unroll
        for (int i = 0; i < TM; i += 4) load<4>(&a[k % 2][i], &A_k[i / 4 * ROW_STEP]);
#pragma unroll
        for (int j = 0; j < TN; j += 4) load<4>(&b[k % 2][j], &B_k[j / 4 * COL_STEP]);
    };
    unsigned filled = 0, free = LAST;
    MARK(WAIT);
    wait_groups<STAGES - 2>();
    MARK(BARRIER);
    __syncthreads();
    MARK(COMPUTE);
    if (AHEAD) read(filled, 0);
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (!AHEAD) read(filled, k);
            if (k == BK - 1) {
                arrive();
                MARK(WAIT);
                wait_groups<STAGES - 2>();
                MARK(BARRIER);
                __syncthreads();  // the next tile is whole, and this one's last reads are done
                MARK(COMPUTE);
                // Behind the last tile is none: its own first fragments are read once more.
                if (step + 1 < steps) filled = filled == LAST ? 0 : filled + sizeof(Stage);
            }
            if (AHEAD) read(filled, (k + 1) % BK);
            if (k == 0 && step + STAGES - 1 < steps) {
                fetch(free, GUARDED ? left : BK);
                free = free == LAST ? 0 : free + sizeof(Stage);
            }
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[k % 2][i] * b[k % 2][j];
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
