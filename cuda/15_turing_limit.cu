// 15: what tensor cores of sm_75 give when nothing but them is waited for.
//
// Changes:    a swizzled layout without padding or conflicts; the next tiles wait in registers; a
//             larger tile of C; two buffers with one barrier a step, placed so that products are
//             left to do behind it; C written through shared memory. Each by itself:
//             steps/15_turing_limit_one_buffer.cu, steps/15_turing_limit_two_buffers.cu.
// Bottleneck: 14's waits, for global memory, at barriers and for fragments.
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing.
// Runs on:    sm_75 and later: ldmatrix, no asynchronous copy; with MMA_K = 16 sm_80 and later.
//
// TC:    type of C: float, or half.
// MMA_K: depth of a product, 8 or 16: mma.m16n8k8, or mma.m16n8k16.
// GROUP: rows of tiles that are computed together, so that they share the L2; 1 for row by row.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "timeline.cuh"
#include "update_halves.cuh"

template <class TC, int BM, int BN, int BK, int WM, int WN, int VEC, int MMA_K, int GROUP>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
turing_limit(int M, int N, int K, float alpha, const half* A, const half* B, float beta, TC* C)
{
    constexpr int WARPS = (BM / WM) * (BN / WN), THREADS = 32 * WARPS;
    constexpr int TM = WM / 16, TN = WN / 8;  // products that make a warp's tile
    constexpr int STEPS = BK / 8;       // fragments are loaded by a depth of 8,
    constexpr int SETS = 2 * MMA_K / 8;  // those of the next product while one is computed
    constexpr int PUT = 1;  // the step before which prefetched tiles are stored
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    static_assert(BK == 32 && BN % 64 == 0 && WM % 32 == 0 && WN % 32 == 0);
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    // 16 rows of each warp's sums lie where the tiles lay, when these are used up.
    constexpr int STRIDE = WN + 8, SLICE = 16 * STRIDE, TILES = 2 * (A_BYTES + B_BYTES);
    __shared__ __align__(128) char shared[TILES > WARPS * SLICE * 4 ? TILES : WARPS * SLICE * 4];
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

    // Where (row, column) of a tile lies, in bytes. Eight halves are a chunk and stay together.
    // Eight rows of one chunk, or eight chunks of one row, meet all 32 banks.
    auto in_a = [](int row, int col) {
        const int chunk = col / 8 ^ row / 2 % 4;
        return 2 * (row * BK + chunk * 8 + col % 8);
    };
    auto in_b = [](int row, int col) {
        const int chunk = col / 8 ^ row % 8;
        return 2 * (row * BN + chunk * 8 + col % 8);
    };

    char* const a_tiles = shared;
    char* const b_tiles = shared + 2 * A_BYTES;

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
    // Single halves would not fit the registers while they wait: a few at a time, and at once.
    auto copy = [&](int buffer, int left) {
        MARK(LOAD);
#pragma unroll 4
        for (int i = 0; i < A_LOADS; ++i) store_a(i, buffer, load_a(i, left));
#pragma unroll 4
        for (int i = 0; i < B_LOADS; ++i) store_b(i, buffer, load_b(i, left));
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    // Fragments of a depth of 8: a lane names a row of A in 32, and one of B in eight, by the four
    // chunks of a row. Sets of them are loaded while others are multiplied.
    const unsigned a_at = shared_address(a_tiles + in_a(ty + lane, 0));
    const unsigned b_at = shared_address(b_tiles + in_b(lane % 8, tx + lane / 8 * 8));
    unsigned a_k[SETS][TM / 2][4] = {}, b_k[SETS][TN / 4][4] = {};
    auto take = [&](int set, int buffer, int step) {
#pragma unroll
        for (int i = 0; i < TM / 2; ++i)
            ldmatrix(a_k[set][i], (a_at ^ step * 16) + buffer * A_BYTES + i * 32 * BK * 2);
#pragma unroll
        for (int j = 0; j < TN / 4; ++j)
            ldmatrix_trans(b_k[set][j], (b_at ^ j * 64) + buffer * B_BYTES + step * 8 * BN * 2);
    };
    float sum[TM][TN][4] = {};
    auto multiply = [&](int set) {  // of a depth of MMA_K: this set, and with 16 the next one too
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                const unsigned* x = &a_k[set][i / 2][i % 2 * 2];
                const unsigned* y = &b_k[set][j / 4][j % 4];
                if constexpr (MMA_K == 8) {
                    mma_k8(sum[i][j], x[0], x[1], y[0]);
                } else {
                    const unsigned* z = &a_k[set + 1][i / 2][i % 2 * 2];
                    mma_k16(sum[i][j], x[0], x[1], z[0], z[1], y[0], b_k[set + 1][j / 4][j % 4]);
                }
            }
    };

    if (VEC == 8) {
        MARK(LOAD);
        fetch(K);
        MARK_ARRIVAL(a, b);
        put(0);
        MARK(LOAD);
        fetch(K - BK);
    } else {
        copy(0, K);
    }
    MARK(BARRIER);
    __syncthreads();
    int now = 0;
    for (int left = K; left > 0; left -= BK) {
        if (VEC == 1) copy(now ^ 1, left - BK);
        MARK(COMPUTE);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            // The next tiles have had a whole step to arrive. Those after them are asked for
            // at once, and have as long.
            if (VEC == 8 && step == PUT) {
                MARK_ARRIVAL(a, b);
                put(now ^ 1);
                MARK(LOAD);
                fetch(left - 2 * BK);
                MARK(COMPUTE);
            }
            // One product behind: a tile's last products are left for behind the barrier, where
            // they hide the first loads from the next one.
            take(step % SETS, now, step);
            if (step % (MMA_K / 8) == 0) multiply((step + SETS - MMA_K / 8) % SETS);
        }
        MARK(BARRIER);
        __syncthreads();  // the next tiles are whole, and the present ones are in registers
        now ^= 1;
    }
    multiply(SETS - MMA_K / 8);

    MARK(STORE);
    const int g = lane / 4, t = lane % 4 * 2;  // a lane's row and columns in a product
    constexpr int FLOATS = VEC == 8 ? 4 : 1;
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
    TIMELINE_END;
}
