// Beside 09: A and B by rows or by columns, rows that lie apart, many products at once.
//
// Changes:    09's ring, its fragments read a step ahead and its main loop without guards. Both
//             operands are copied float by float, a warp along the direction in which they are
//             neighbours, and lie in shared memory with K the slowest, padded. A tile for each
//             block, none cut.
// Launch:     grid (tiles of all products), block 32 * BM / WM * BN / WN; any M, N, K. Nothing needs
//             to be aligned but to its own floats.
// Runs on:    sm_75 and later.
//
// STAGES, BLOCKS:       as in 09.
// A_BY_ROWS, B_BY_ROWS: whether neighbours of a row are neighbours in memory, or of a column.
#include "copy.cuh"
#include "raster.cuh"
#include "strides.cuh"
#include "timeline.cuh"

// A thread's copies of a tile: of BK steps of K in each of LINES rows of A, or columns of B. ALONG_K:
// neighbours in memory lie along K; otherwise along the lines.
template <int LINES, int BK, int THREADS, bool ALONG_K>
struct Copies {
    static constexpr int PITCH = LINES + 4, COUNT = LINES * BK / THREADS;
    // Copies that lie beside each other along the lines, before the next step of K follows.
    static constexpr int BESIDE = ALONG_K ? LINES * 8 / THREADS : 1;
    static_assert(COUNT * THREADS == LINES * BK && COUNT % BESIDE == 0);
    static_assert(ALONG_K ? THREADS * BESIDE == LINES * 8 && BK % 8 == 0 : THREADS % LINES == 0);
    const float* from;  // the operand, from the next step's first k on
    int pitch, lines, first;
    Copy<1> copies[COUNT];

    // The copies for the stage at `to`, of which `valid` steps of K are asked. Lines outside are
    // read from the last one inside: nobody stores their sums.
    __device__ void begin(unsigned to, int valid, bool whole)
    {
        const int thread = threadIdx.x;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int k = ALONG_K ? thread % 8 + i / BESIDE * 8
                                  : thread / LINES + i * (THREADS / LINES);
            const int line = ALONG_K ? thread / 8 + i % BESIDE * (THREADS / 8) : thread % LINES;
            const size_t at = min(first + line, lines - 1);
            copies[i].begin(to + (k * PITCH + line) * 4,
                            from + (ALONG_K ? at * pitch + k : (size_t)k * pitch + at),
                            whole || k < valid);
        }
        from += ALONG_K ? valid : (size_t)valid * pitch;
    }
    __device__ void finish()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) copies[i].finish();
    }
};

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int BLOCKS, bool A_BY_ROWS,
          bool B_BY_ROWS>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), RESIDENT<1, BLOCKS>)
fp32_limit_layouts(int M, int N, int K, float alpha, const float* A, const float* B, float beta,
                   float* C, Strides strides)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int LM = 8, LN = 4, TM = WM / LM, TN = WN / LN;
    constexpr int ROW_STEP = 4 * LM, COL_STEP = 4 * LN;  // from one group of 4×4 to the next
    struct Stage {
        float A[BK][BM + 4], B[BK][BN + 4];
    };
    constexpr unsigned LAST = (STAGES - 1) * sizeof(Stage);  // stages are named by their offset
    extern __shared__ __align__(128) char shared[];
    Stage& stage = *reinterpret_cast<Stage*>(shared);
    const unsigned to_a = __cvta_generic_to_shared(&stage.A[0][0]);
    const unsigned to_b = __cvta_generic_to_shared(&stage.B[0][0]);

    // Where the lane lies: bit 0 counts columns and bit 1 rows.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int x = lane % 2 + lane / 4 % (LN / 2) * 2, y = lane / 2 % 2 + lane / (2 * LN) * 2;
    const int tx = warp % (BN / WN) * WN + x * 4, ty = warp / (BN / WN) * WM + y * 4;
    const char* const read_a = reinterpret_cast<const char*>(&stage.A[0][ty]);
    const char* const read_b = reinterpret_cast<const char*>(&stage.B[0][tx]);
    const int down = (M + BM - 1) / BM, across = (N + BN - 1) / BN;
    const auto at = place(C, N, blockIdx.x, down * across, strides);
    const int2 tile = raster<8>(at.tile, down, across);
    const int row0 = tile.x * BM, col0 = tile.y * BN;
    TIMELINE_BEGIN;

    const int steps = max((K + BK - 1) / BK, 1);
    const auto of = operands(A, K, B, N, at.product, strides);
    Copies<BM, BK, THREADS, A_BY_ROWS> copies_a{of.A, of.a, M, row0};
    Copies<BN, BK, THREADS, !B_BY_ROWS> copies_b{of.B, of.b, N, col0};
    // The first step takes what K leaves over, so that no other step need look.
    auto fetch = [&](unsigned free, int valid) {
        copies_a.begin(to_a + free, valid, valid == BK);
        copies_b.begin(to_b + free, valid, valid == BK);
    };
    auto arrive = [&] {
        copies_a.finish(), copies_b.finish();
        close_group();
    };
    MARK(LOAD);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) fetch(s * sizeof(Stage), s == 0 ? K - (steps - 1) * BK : BK);
        arrive();
    }

    float sum[TM][TN] = {}, a[2][TM], b[2][TN];
    auto read = [&](unsigned offset, int k) {  // the fragments of step k
        const float* A_k = reinterpret_cast<const float*>(read_a + offset) + k * (BM + 4);
        const float* B_k = reinterpret_cast<const float*>(read_b + offset) + k * (BN + 4);
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
    read(filled, 0);
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
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
            read(filled, (k + 1) % BK);
            if (k == 0 && step + STAGES - 1 < steps) {
                fetch(free, BK);
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
        for (int j = 0; j < TN; ++j) {
            const int col = col0 + tx + j / 4 * COL_STEP + j % 4;
            if (col < N) update(&at.C[(size_t)row * at.pitch + col], alpha, sum[i][j], beta);
        }
    }
    TIMELINE_END;
}
