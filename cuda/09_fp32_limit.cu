// 09: what is left of the last per cent, taken together.
//
// Changes:    copies in flight that take no registers (sm_80), spread over the steps; fragments
//             read one step ahead; no guard in the main loop; an order of multiply-adds that suits
//             the register banks; and work dealt evenly, so that no SM idles in the last wave.
// Bottleneck: 08's empty issue slots (dispatch stalls, waits for shared memory), and the SMs that
//             idle in the last wave.
// Launch:     grid (G), block 32 * BM / WM * BN / WN; any M, N, K. G blocks share all tiles: the
//             best G is as many as fit the GPU at once. VEC = 4 asks for an N that is a multiple of
//             4 and a B and C aligned to 16 bytes; VEC = 1 for nothing. `parts` has room for 2 G
//             tiles, `arrivals` an int for each tile; arrivals are 0, and left at 0.
// Runs on:    sm_75 and later.
//
// STAGES: tiles of K in shared memory, all but one in flight.
// SPREAD: steps of k over which the copies of a tile are spread.
// BLOCKS: blocks that the compiler must leave registers for on one SM.
#include "copy.cuh"
#include "timeline.cuh"

// The compiler takes a value that went through here as given, and does not compute it anew.
template <class T> __device__ inline void keep(T& value) { asm volatile("" : "+r"(value)); }

template <int BM, int BN, int BK, int WM, int WN, int STAGES, int SPREAD, bool TURNING,
          int BLOCKS, int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), RESIDENT<VEC, BLOCKS>)
fp32_limit(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C,
           float* parts, int* arrivals)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int LM = 8, LN = 4, TM = WM / LM, TN = WN / LN;
    constexpr int ROW_STEP = 4 * LM, COL_STEP = 4 * LN;  // from one group of 4×4 to the next
    constexpr int A_COPIES = BM * BK / THREADS, A_STEP = THREADS / 8, ROWS = A_COPIES * 8 / BK;
    constexpr int B_COPIES = BK * BN / VEC / THREADS, B_STEP = THREADS / (BN / VEC);
    constexpr int COPIES = A_COPIES + B_COPIES, AT_ONCE = (COPIES + SPREAD - 1) / SPREAD;
    static_assert(A_COPIES * THREADS == BM * BK && B_COPIES * VEC * THREADS == BK * BN);
    static_assert(ROWS * BK == A_COPIES * 8 && SPREAD < BK);
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
    unsigned to_a = __cvta_generic_to_shared(&stage.A[ak][am]);
    unsigned to_b = __cvta_generic_to_shared(&stage.B[bk][bn]);
    keep(to_a), keep(to_b);
    const int warp = tid / 32, lane = tid % 32;
    const int x = lane % 2 + lane / 4 % (LN / 2) * 2, y = lane / 2 % 2 + lane / (2 * LN) * 2;
    const int tx = warp % (BN / WN) * WN + x * 4, ty = warp / (BN / WN) * WM + y * 4;
    const char* const read_a = reinterpret_cast<const char*>(&stage.A[0][ty]);
    const char* const read_b = reinterpret_cast<const char*>(&stage.B[0][tx]);
    TIMELINE_BEGIN;

    // The tiles that fill whole waves belong to one block each. The others, fewer than two a block,
    // are cut along K into equal shares: a share may end one tile and begin the next.
    const int columns = (N + BN - 1) / BN, rows = (M + BM - 1) / BM, tiles = columns * rows;
    const int steps = max((K + BK - 1) / BK, 1),
              blocks = min((long long)gridDim.x, (long long)tiles * steps);
    if (blockIdx.x >= blocks) return;
    const int cut = tiles < 2 * blocks ? tiles : tiles % blocks + blocks;
    const long long cut_steps = (long long)cut * steps;
    const long long begin = blockIdx.x * cut_steps / blocks;
    int share = (blockIdx.x + 1) * cut_steps / blocks - begin;  // what is left of it, in steps
    int next = begin / steps, from = begin % steps, whole = cut + blockIdx.x;
    for (; share > 0 || whole < tiles; from = 0) {
        int tile = whole, to = steps;
        if (share > 0) {
            tile = next++, to = min(steps, from + share), share -= to - from;
        } else {
            whole += blocks;
        }
        // Tiles go down in groups of eight rows, so that blocks at work share rows and columns.
        const int group = tile / (8 * columns) * 8, height = min(8, rows - group);
        const int row0 = (group + tile % (8 * columns) % height) * BM;
        const int col0 = tile % (8 * columns) / height * BN;

        // Rows and columns outside are read from the last one inside: nobody stores their sums.
        // The first step takes what K leaves over, so that no other step need look.
        const int first = K - (steps - 1) * BK, k0 = from == 0 ? 0 : first + (from - 1) * BK;
        int copied_rows[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
            copied_rows[i] = min(row0 + am + i * A_STEP, M - 1), keep(copied_rows[i]);
        int stride_a = 4 * K, stride_b = 4 * N;
        keep(stride_a), keep(stride_b);
        const char* from_a = reinterpret_cast<const char*>(A + k0 + ak);
        const char* from_b =
            reinterpret_cast<const char*>(B + (size_t)(k0 + bk) * N + min(col0 + bn, N - VEC));
        Copy<1> copies_a[A_COPIES];
        Copy<VEC> copies_b[B_COPIES];
        auto copy = [&](unsigned free, int i, int valid) {  // the i-th copy, for `valid` of K
            if (i < A_COPIES) {
                const int row = i % ROWS, k = i / ROWS * 8;
                copies_a[i].begin(to_a + free + (k * (BM + 4) + row * A_STEP) * 4,
                                  from_a + (long long)copied_rows[row] * stride_a + k * 4,
                                  valid == BK || ak + k < valid);
            } else {
                const int k = (i - A_COPIES) * B_STEP;
                copies_b[i - A_COPIES].begin(to_b + free + k * BN * 4,
                                             from_b + (long long)k * stride_b,
                                             valid == BK || bk + k < valid);
            }
        };
        auto advance = [&](int k) { from_a += 4 * k, from_b += (long long)k * stride_b; };
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
            if (from + s < to) {
                const int valid = from + s == 0 ? first : BK;
#pragma unroll
                for (int i = 0; i < COPIES; ++i) copy(s * sizeof(Stage), i, valid);
                advance(valid);
            }
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
        read(filled, 0);
        for (int left = to - from; left > 0; --left) {
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
                    if (left > 1) filled = filled == LAST ? 0 : filled + sizeof(Stage);
                }
                read(filled, (k + 1) % BK);
                if (left >= STAGES) {
#pragma unroll
                    for (int i = 0; i < COPIES; ++i)
                        if (i / AT_ONCE == k) copy(free, i, BK);
                    if (k == SPREAD - 1) {
                        advance(BK);
                        free = free == LAST ? 0 : free + sizeof(Stage);
                    }
                }
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) {
                        const int turned = TURNING && i % 2 ? TN - 1 - j : j;
                        sum[i][turned] += a[k % 2][i] * b[k % 2][turned];
                    }
            }
        }

        MARK(STORE);
        wait_groups<0>();
        __syncthreads();
        if (from > 0 || to < steps) {
            // Part of the tile's sum: the last block to arrive adds up all parts, in their order.
            const long long begins = (long long)tile * steps, ends = begins + steps - 1;
            const int first_block = ((begins + 1) * blocks - 1) / cut_steps;
            const int last_block = ((ends + 1) * blocks - 1) / cut_steps;
            auto part = [&](int block) {  // of a block's two places, one is for a tile it begins
                const size_t place = 2 * block + (block == first_block);
                return parts + place * (BM * BN) + tid;
            };
            // Floats one by one: vectors would bind four sums to registers in a row, whose banks
            // then are those of b.
            float* mine = part(blockIdx.x);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) mine[(i * TN + j) * THREADS] = sum[i][j];
            __threadfence();
            __syncthreads();
            __shared__ int before;
            if (tid == 0) before = atomicAdd(&arrivals[tile], 1);
            __syncthreads();
            if (before != last_block - first_block) continue;
            __threadfence();
            if (tid == 0) arrivals[tile] = 0;
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] = 0.0f;
#pragma unroll(TM * TN <= 64 ? 4 : 1)
            for (int block = first_block; block <= last_block; ++block) {
                const float* other = part(block);
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) sum[i][j] += other[(i * TN + j) * THREADS];
            }
        }
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
    }
    TIMELINE_END;
}
