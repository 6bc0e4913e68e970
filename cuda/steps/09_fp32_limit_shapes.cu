// Beside 09: tiles for any shape. Few rows or columns, any layout, K shared out, many products.
//
// Changes:    09's ring, its fragments read a step ahead and its main loop without guards. A warp's
//             lanes lie in any rectangle, so that a tile may be one row. The warps of a block share
//             a step's K where SLICES > 1, and the blocks of a cluster the steps; their sums meet in
//             shared memory. An operand whose neighbours lie along K is copied float by float, and
//             one that is read along its rows VEC floats at a time. A tile for each block.
// Launch:     grid (tiles of all products * CLUSTER_K), block 32 * BM / WM * BN / WN * SLICES; any
//             M, N, K. VEC = 4 asks for B and C by rows that are tight and multiples of 16 bytes.
//             May be launched with programmatic stream serialization (grid.cuh).
// Runs on:    sm_75 and later; CLUSTER_K > 1 on sm_90 and later.
//
// STAGES, BLOCKS:       as in 09.
// SLICES, CLUSTER_K:    warps of a block, and blocks of a cluster, that share the K of a tile.
// A_BY_ROWS, B_BY_ROWS: whether neighbours of a row are neighbours in memory, or of a column.
// S:                    Strides, for a batch or matrices that aren't tight (strides.cuh).
#include "cluster.cuh"
#include "copy.cuh"
#include "grid.cuh"
#include "raster.cuh"
#include "strides.cuh"
#include "timeline.cuh"

#if __CUDA_ARCH__ >= 900
#define OF_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
constexpr bool HOPPER = true;
#else  // what they don't know
#define OF_CLUSTER(blocks)
constexpr bool HOPPER = false;
#endif

// Floats from a step of K to the next in shared memory: eight that are transposed on their way meet
// different banks.
template <int LINES> constexpr int PITCH = LINES < 8 ? LINES : LINES + 4;

template <int LEAST, int VALUE, int MOST>
constexpr int BETWEEN = VALUE < LEAST ? LEAST : VALUE > MOST ? MOST : VALUE;

// The largest power of two that is no larger.
template <int VALUE> constexpr int POWER = 2 * POWER<VALUE / 2>;
template <> constexpr int POWER<0> = 1;
template <> constexpr int POWER<1> = 1;

// A thread's copies of a tile: of BK steps of K in each of LINES rows of A, or columns of B. ALONG_K:
// neighbours in memory lie along K; otherwise along the lines, and VEC of them are copied at once.
template <int LINES, int BK, int THREADS, bool ALONG_K, int VEC>
struct Copies {
    // Threads beside each other in memory, how often these are there, and all that have a part.
    static constexpr int BESIDE = ALONG_K ? BETWEEN<8, THREADS / LINES, BK> : LINES / VEC;
    static constexpr int DOWN = BETWEEN<1, POWER<THREADS / BESIDE>, ALONG_K ? LINES : BK>;
    static constexpr int ACTIVE = DOWN * BESIDE, COUNT = LINES * BK / VEC / ACTIVE;
    // Of an operand along K, copies of other lines before the next step of K follows.
    static constexpr int LINE_COPIES = LINES / DOWN;
    static_assert(COUNT * ACTIVE * VEC == LINES * BK && ACTIVE <= THREADS);
    static_assert(!ALONG_K || VEC == 1);
    static_assert(!ALONG_K || (LINE_COPIES * DOWN == LINES && BK % BESIDE == 0));
    const float* from;  // the operand, from the next step's first k on
    int pitch, lines, first;
    Copy<VEC> copies[COUNT];

    // The copies for the stage at `to`, of which `valid` steps of K are asked. Lines outside are
    // read from the last one inside: nobody stores their sums.
    __device__ void begin(unsigned to, int valid, bool whole)
    {
        const int beside = threadIdx.x % BESIDE, down = threadIdx.x / BESIDE;
        if (ACTIVE == THREADS || threadIdx.x < ACTIVE) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const int k = ALONG_K ? beside + i / LINE_COPIES * BESIDE : down + i * DOWN;
                const int line = ALONG_K ? down + i % LINE_COPIES * DOWN : beside * VEC;
                const size_t at = min(first + line, lines - VEC);
                copies[i].begin(to + (k * PITCH<LINES> + line) * 4,
                                from + (ALONG_K ? at * pitch + k : (size_t)k * pitch + at),
                                whole || k < valid);
            }
        }
        skip(valid);
    }
    __device__ void skip(int k) { from += ALONG_K ? k : (size_t)k * pitch; }
    __device__ void finish()
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) copies[i].finish();
    }
};

// COUNT floats in vectors of at most four, STEP floats apart.
template <int COUNT, int STEP>
__device__ inline void load_groups(float* to, const float* from)
{
    constexpr int EACH = COUNT < 4 ? COUNT : 4;
#pragma unroll
    for (int i = 0; i < COUNT; i += EACH) load<EACH>(&to[i], &from[i / EACH * STEP]);
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int STAGES, int SLICES,
          int CLUSTER_K, int BLOCKS, int VEC, bool B_BY_ROWS, bool A_BY_ROWS = true, class... S>
__global__ void OF_CLUSTER(CLUSTER_K)
__launch_bounds__(32 * (BM / WM) * (BN / WN) * SLICES, RESIDENT<VEC, BLOCKS>)
fp32_limit_shapes(int M, int N, int K, float alpha, const float* A, const float* B, float beta,
                  float* C, S... strides)
{
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS * SLICES;
    constexpr int LM = WM / TM, LN = WN / TN, OURS = BK / SLICES;  // steps of K of a warp
    constexpr int GM = TM < 4 ? TM : 4, GN = TN < 4 ? TN : 4;      // neighbours of a thread
    constexpr int ROW_STEP = GM * LM, COL_STEP = GN * LN;          // from one such group to the next
    static_assert(LM * LN == 32 && OURS * SLICES == BK && OURS % 2 == 0 && BN % 4 == 0);
    static_assert(CLUSTER_K == 1 || HOPPER);
    struct Stage {
        float A[BK][PITCH<BM>], B[BK][PITCH<BN>];
    };
    constexpr unsigned LAST = (STAGES - 1) * sizeof(Stage);  // stages are named by their offset
    extern __shared__ __align__(128) char shared[];
    Stage& stage = *reinterpret_cast<Stage*>(shared);
    const unsigned to_a = __cvta_generic_to_shared(&stage.A[0][0]);
    const unsigned to_b = __cvta_generic_to_shared(&stage.B[0][0]);

    // Where the lane lies: bit 0 counts columns and bit 1 rows, where there are both.
    const int warp = threadIdx.x / 32 % WARPS, slice = threadIdx.x / 32 / WARPS;
    const int lane = threadIdx.x % 32;
    const int x = LN == 1 ? 0 : LM == 1 ? lane : lane % 2 + lane / 4 % (LN / 2) * 2;
    const int y = LM == 1 ? 0 : LN == 1 ? lane : lane / 2 % 2 + lane / (2 * LN) * 2;
    const int tx = warp % (BN / WN) * WN + x * GN, ty = warp / (BN / WN) * WM + y * GM;
    const char* const read_a = reinterpret_cast<const char*>(&stage.A[slice * OURS][ty]);
    const char* const read_b = reinterpret_cast<const char*>(&stage.B[slice * OURS][tx]);
    const int rank = CLUSTER_K > 1 ? cluster_rank() : 0;
    const int down = (M + BM - 1) / BM, across = (N + BN - 1) / BN;
    const auto at = place(C, N, blockIdx.x / CLUSTER_K, down * across, strides...);
    const int2 tile = raster<8>(at.tile, down, across);
    const int row0 = tile.x * BM, col0 = tile.y * BN;
    if constexpr (HOPPER) grid_wait(), grid_go();
    TIMELINE_BEGIN;

    // The first step takes what K leaves over, so that no other step need look.
    const int all = max((K + BK - 1) / BK, 1), first = K - (all - 1) * BK;
    const int begin = rank * all / CLUSTER_K, steps = (rank + 1) * all / CLUSTER_K - begin;
    const auto of =
        operands(A, A_BY_ROWS ? K : M, B, B_BY_ROWS ? N : K, at.product, strides...);
    Copies<BM, BK, THREADS, A_BY_ROWS, A_BY_ROWS ? 1 : VEC> copies_a{of.A, of.a, M, row0};
    Copies<BN, BK, THREADS, !B_BY_ROWS, B_BY_ROWS ? VEC : 1> copies_b{of.B, of.b, N, col0};
    if (begin > 0) {
        const int k = first + (begin - 1) * BK;
        copies_a.skip(k), copies_b.skip(k);
    }
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
        if (s < steps) fetch(s * sizeof(Stage), begin + s == 0 ? first : BK);
        arrive();
    }

    float sum[TM][TN] = {}, a[2][TM], b[2][TN];
    auto read = [&](unsigned offset, int k) {  // the fragments of step k
        const float* A_k = reinterpret_cast<const float*>(read_a + offset) + k * PITCH<BM>;
        const float* B_k = reinterpret_cast<const float*>(read_b + offset) + k * PITCH<BN>;
        load_groups<TM, ROW_STEP>(a[k % 2], A_k);
        load_groups<TN, COL_STEP>(b[k % 2], B_k);
    };
    unsigned filled = 0, free = LAST;
    MARK(WAIT);
    wait_groups<STAGES - 2>();
    MARK(BARRIER);
    __syncthreads();
    MARK(COMPUTE);
    if (steps > 0) read(filled, 0);
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int k = 0; k < OURS; ++k) {
            if (k == OURS - 1) {
                arrive();
                MARK(WAIT);
                wait_groups<STAGES - 2>();
                MARK(BARRIER);
                __syncthreads();  // the next tile is whole, and this one's last reads are done
                MARK(COMPUTE);
                // Behind the last tile is none: its own first fragments are read once more.
                if (step + 1 < steps) filled = filled == LAST ? 0 : filled + sizeof(Stage);
            }
            read(filled, (k + 1) % OURS);
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
    if constexpr (SLICES * CLUSTER_K == 1) {
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int row = row0 + ty + i / GM * ROW_STEP + i % GM;
            if (row >= M) break;
#pragma unroll
            for (int j = 0; j < TN; j += VEC) {
                const int col = col0 + tx + j / GN * COL_STEP + j % GN;
                if (col < N)
                    update<VEC>(&at.C[(size_t)row * at.pitch + col], alpha, &sum[i][j], beta);
            }
        }
    } else {
        // Sums take the place of the ring: of each slice a tile, its rows four floats apart.
        constexpr int WIDE = BN + 4, FOURS = BM * BN / 4;
        wait_groups<0>();
        __syncthreads();
        float* const sums = reinterpret_cast<float*>(shared) + slice * BM * WIDE;
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; j += GN)
                store<GN>(&sums[(ty + i / GM * ROW_STEP + i % GM) * WIDE + tx + j / GN * COL_STEP],
                          &sum[i][j]);
        if constexpr (CLUSTER_K > 1) cluster_barrier();
        else __syncthreads();
        // Each block adds up its share of the tile, always in the order of K.
        for (int i = rank * FOURS / CLUSTER_K + threadIdx.x; i < (rank + 1) * FOURS / CLUSTER_K;
             i += THREADS) {
            const int r = i / (BN / 4), c = i % (BN / 4) * 4;
            const unsigned from = __cvta_generic_to_shared(shared) + (r * WIDE + c) * 4;
            float total[4] = {};
#pragma unroll(CLUSTER_K * SLICES <= 16 ? CLUSTER_K * SLICES : 8)
            for (int k = 0; k < CLUSTER_K * SLICES; ++k) {
                const unsigned of_slice = from + k % SLICES * (BM * WIDE * 4);
                float4 part;
                if constexpr (CLUSTER_K > 1)
                    part = cluster_load(cluster_address(of_slice, k / SLICES));
                else part = *static_cast<const float4*>(__cvta_shared_to_generic(of_slice));
                total[0] += part.x, total[1] += part.y, total[2] += part.z, total[3] += part.w;
            }
            float* to = &at.C[(size_t)(row0 + r) * at.pitch + col0 + c];
#pragma unroll
            for (int j = 0; j < 4; j += VEC)
                if (row0 + r < M && col0 + c + j < N) update<VEC>(&to[j], alpha, &total[j], beta);
        }
        if constexpr (CLUSTER_K > 1) cluster_barrier();  // no block leaves while one reads its sums
    }
    TIMELINE_END;
}
