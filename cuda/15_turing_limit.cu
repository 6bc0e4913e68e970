// 15: what tensor cores of sm_75 give when nothing but them is waited for.
//
// Changes:    a swizzled layout without padding or conflicts; the next tiles wait in registers; a
//             larger tile of C; two buffers with one barrier a step, placed so that products are
//             left to do behind it; C written through shared memory.
// Bottleneck: 14's waits, for global memory, at barriers and for fragments.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing.
// Runs on:    sm_75 and later, with what sm_75 has: mma.m16n8k8, ldmatrix, no asynchronous copy.
//
// TC:         type of C: float, or half.
// Each step from 14 to this kernel is a constant of its own:
// SWIZZLED: chunks of eight halves are XORed with their row; otherwise rows are padded.
// PREFETCH: the next tiles are loaded into registers while the present ones are multiplied.
// WALK:     a lane's addresses are made once and then XORed; otherwise made from row and column.
// BUFFERS:  pairs of tiles in shared memory: with 2, one barrier a step is enough.
// STAGED:   C is written row by row from shared memory; otherwise from where the sums are.
// GROUP:    rows of tiles that are computed together, so that they share the L2; 1 for row by row.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "timeline.cuh"
#include "update_halves.cuh"

template <class TC, int BM, int BN, int BK, int WM, int WN, int VEC, bool SWIZZLED, bool PREFETCH,
          bool WALK, int BUFFERS, bool STAGED, int GROUP>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
turing_limit(int M, int N, int K, float alpha, const half* A, const half* B, float beta, TC* C)
{
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS;
    constexpr int TM = WM / 16, TN = WN / 8, STEPS = BK / 8;  // products of 16×8×8
    constexpr int PUT = 1;  // the step before which prefetched tiles are stored
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    static_assert(BK == 32 && BN % 64 == 0 && WM % 32 == 0 && WN % 32 == 0 && STEPS % 2 == 0);
    // Strides of rows, in halves, and of tiles, in bytes.
    constexpr int A_ROW = BK + (SWIZZLED ? 0 : 8), B_ROW = BN + (SWIZZLED ? 0 : 8);
    constexpr int A_BYTES = BM * A_ROW * 2, B_BYTES = BK * B_ROW * 2;
    constexpr int SLICE = 16 * (WN + 8);  // floats: 16 rows of a warp's sums
    constexpr int TILES = BUFFERS * (A_BYTES + B_BYTES), SLICES = STAGED ? WARPS * SLICE * 4 : 0;
    __shared__ __align__(128) char shared[TILES > SLICES ? TILES : SLICES];
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    // The block's tile of C: down a group of GROUP rows of tiles, then its next column.
    unsigned tile_row = blockIdx.y, tile_col = blockIdx.x;
    if (GROUP > 1) {
        const unsigned long long id = (unsigned long long)blockIdx.y * gridDim.x + blockIdx.x;
        const unsigned long long area = (unsigned long long)GROUP * gridDim.x;
        const unsigned first = id / area * GROUP, place = id % area;
        const unsigned rows = min(gridDim.y - first, (unsigned)GROUP);
        tile_row = first + place % rows, tile_col = place / rows;
    }
    const int row0 = tile_row * BM, col0 = tile_col * BN;
    TIMELINE_BEGIN;

    // Where (row, column) of a tile lies. Eight halves are a chunk of 16 bytes and stay together.
    // Eight rows of one chunk, or eight chunks of one row, meet all 32 banks.
    auto in_a = [](int row, int col) {
        const int chunk = SWIZZLED ? col / 8 ^ row / 2 % 4 : col / 8;
        return 2 * (row * A_ROW + chunk * 8 + col % 8);
    };
    auto in_b = [](int row, int col) {
        const int chunk = SWIZZLED ? col / 8 ^ row % 8 : col / 8;
        return 2 * (row * B_ROW + chunk * 8 + col % 8);
    };
    char* const a_tiles = shared;
    char* const b_tiles = shared + BUFFERS * A_BYTES;

    const half* from_a = &A[(size_t)(row0 + am) * K + ak];
    const half* from_b = &B[(size_t)bk * N + col0 + bn];
    // A thread's i-th part of the next tiles, of which `left` of K lie inside the matrices.
    auto load_a = [&](int i, int left) {
        const bool inside = row0 + am + i * A_STEP < M && ak < left;
        return load<VEC>(&from_a[(size_t)(i * A_STEP) * K], inside);
    };
    auto load_b = [&](int i, int left) {
        const bool inside = bk + i * B_STEP < left && col0 + bn < N;
        return load<VEC>(&from_b[(size_t)(i * B_STEP) * N], inside);
    };
    auto store_a = [&](int i, int buffer, Pack<VEC> pack) {
        char* to = a_tiles + buffer * A_BYTES + in_a(am + i * A_STEP, ak);
        store<VEC>(reinterpret_cast<half*>(to), pack);
    };
    auto store_b = [&](int i, int buffer, Pack<VEC> pack) {
        char* to = b_tiles + buffer * B_BYTES + in_b(bk + i * B_STEP, bn);
        store<VEC>(reinterpret_cast<half*>(to), pack);
    };
    Pack<VEC> a[A_LOADS], b[B_LOADS];
    auto fetch = [&](int left) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) a[i] = load_a(i, left);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) b[i] = load_b(i, left);
        from_a += BK;
        from_b += (size_t)BK * N;
    };
    auto put = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) store_a(i, buffer, a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store_b(i, buffer, b[i]);
    };
    auto copy = [&](int buffer, int left) {  // both, without a wait in registers
        if (VEC == 8) {
            MARK(LOAD);
            fetch(left);
            MARK_ARRIVAL(a, b);
            put(buffer);
            return;
        }
        // So many single halves would not fit: a few at a time.
        MARK(LOAD);
#pragma unroll 4
        for (int i = 0; i < A_LOADS; ++i) store_a(i, buffer, load_a(i, left));
#pragma unroll 4
        for (int i = 0; i < B_LOADS; ++i) store_b(i, buffer, load_b(i, left));
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    // Fragments of a depth of 8: a lane names a row of A in 32, and one of B in eight, by the four
    // chunks of a row. Two sets: one is loaded while the other is multiplied.
    const unsigned a_at = shared_address(a_tiles + in_a(ty + lane, 0));
    const unsigned b_at = shared_address(b_tiles + in_b(lane % 8, tx + lane / 8 * 8));
    unsigned a_k[2][TM / 2][4] = {}, b_k[2][TN / 4][4] = {};
    auto take = [&](int set, int buffer, int step) {
#pragma unroll
        for (int i = 0; i < TM / 2; ++i)
            if (WALK && SWIZZLED)
                ldmatrix(a_k[set][i],
                         (a_at ^ step * 16) + buffer * A_BYTES + i * 32 * A_ROW * 2);
            else
                ldmatrix(a_k[set][i], shared_address(a_tiles + buffer * A_BYTES
                                                     + in_a(ty + 32 * i + lane, 8 * step)));
#pragma unroll
        for (int j = 0; j < TN / 4; ++j)
            if (WALK && SWIZZLED)
                ldmatrix_trans(b_k[set][j],
                               (b_at ^ j * 64) + buffer * B_BYTES + step * 8 * B_ROW * 2);
            else
                ldmatrix_trans(b_k[set][j],
                               shared_address(b_tiles + buffer * B_BYTES
                                              + in_b(8 * step + lane % 8,
                                                     tx + 32 * j + lane / 8 * 8)));
    };
    float sum[TM][TN][4] = {};
    auto multiply = [&](int set) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j)
                mma_k8(sum[i][j], a_k[set][i / 2][i % 2 * 2], a_k[set][i / 2][i % 2 * 2 + 1],
                       b_k[set][j / 4][j % 4]);
    };

    if (BUFFERS == 1) {
        if (PREFETCH) {
            MARK(LOAD);
            fetch(K);
        }
        for (int left = K; left > 0; left -= BK) {
            if (PREFETCH) {
                MARK_ARRIVAL(a, b);
                put(0);
            } else {
                copy(0, left);
            }
            MARK(BARRIER);
            __syncthreads();  // the tiles are whole before anyone reads them
            if (PREFETCH) {
                MARK(LOAD);
                fetch(left - BK);
            }
            MARK(COMPUTE);
            take(0, 0, 0);
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                if (step + 1 < STEPS) take((step + 1) % 2, 0, step + 1);
                multiply(step % 2);
            }
            MARK(BARRIER);
            __syncthreads();  // everyone has read them before they are overwritten
        }
    } else {
        copy(0, K);
        if (PREFETCH) {
            MARK(LOAD);
            fetch(K - BK);
        }
        MARK(BARRIER);
        __syncthreads();
        int now = 0;
        for (int left = K; left > 0; left -= BK) {
            if (!PREFETCH) copy(now ^ 1, left - BK);
            MARK(COMPUTE);
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                // The next tiles arrived while the last ones were multiplied: nobody waits for
                // them here. Those after them are asked for at once, and have as long.
                if (PREFETCH && step == PUT) {
                    MARK_ARRIVAL(a, b);
                    put(now ^ 1);
                    MARK(LOAD);
                    fetch(left - 2 * BK);
                    MARK(COMPUTE);
                }
                // One step behind: the last products of a tile are left for behind the barrier,
                // where they hide the first loads from the next one.
                take(step % 2, now, step);
                multiply(1 - step % 2);
            }
            MARK(BARRIER);
            __syncthreads();  // the next tiles are whole, and the present ones are in registers
            now ^= 1;
        }
        multiply((STEPS - 1) % 2);
    }

    MARK(STORE);
    const int g = lane / 4, t = lane % 4 * 2;  // a lane's row and columns in a product
    if (STAGED) {
        constexpr int FLOATS = VEC == 8 ? 4 : 1, STRIDE = WN + 8;
        // Behind the last barrier nobody reads a tile: they lie in registers.
        float* slice = reinterpret_cast<float*>(shared) + warp * SLICE;
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                store<2>(&slice[g * STRIDE + 8 * j + t], &sum[i][j][0]);
                store<2>(&slice[(g + 8) * STRIDE + 8 * j + t], &sum[i][j][2]);
            }
            __syncwarp();
#pragma unroll
            for (int e = lane * FLOATS; e < 16 * WN; e += 32 * FLOATS) {
                const int row = row0 + ty + 16 * i + e / WN, col = col0 + tx + e % WN;
                float values[FLOATS];
                load<FLOATS>(values, &slice[e / WN * STRIDE + e % WN]);
                if (row < M && col < N)
                    update<FLOATS>(&C[(size_t)row * N + col], alpha, values, beta);
            }
            __syncwarp();  // every lane has read them before the next ones come
        }
    } else {
        constexpr int PAIR = VEC == 8 ? 2 : 1;
        const int row = row0 + ty + g, col = col0 + tx + t;
        TC* to = &C[(size_t)row * N + col];
#pragma unroll
        for (int i = 0; i < 2 * TM; ++i) {
            if (row + 8 * i >= M) break;
#pragma unroll
            for (int j = 0; j < TN; ++j)
#pragma unroll
                for (int c = 0; c < 2; c += PAIR)
                    if (col + 8 * j + c < N)
                        update<PAIR>(
                            &to[8 * j + c], alpha, &sum[i / 2][j][i % 2 * 2 + c], beta);
            to += (size_t)8 * N;
        }
    }
    TIMELINE_END;
}
