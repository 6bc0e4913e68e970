// From 14 to 15, with one buffer: other layouts of the tiles, the next tiles in registers, a larger
// tile of C. Fragments are loaded a step ahead, as in 15.
//
// Launch:     grid (ceil(N / BN), ceil(M / BM)), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing, and for no PREFETCH.
// Runs on:    sm_75 and later.
//
// PREFETCH:   the next tiles are loaded into registers while the present ones are multiplied.
// BLOCKS:     blocks that the compiler must leave registers for on one SM; 0: as it sees fit.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "timeline.cuh"
#include "vector.cuh"

// Where the chunks of eight halves of a row lie in the tiles of A and B.
enum Layout {
    PLAIN,   // in their order, without a gap: rows of a matrix that ldmatrix reads share banks
    PADDED,  // a chunk of padding behind each row
    XORED,   // in the place that is their number, XORed with the row's
};

template <int BM, int BN, int BK, int WM, int WN, int VEC, Layout LAYOUT, bool PREFETCH, int BLOCKS>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), BLOCKS)
turing_limit_one_buffer(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int TM = WM / 16, TN = WN / 8;  // products that make a warp's tile
    constexpr int STEPS = BK / 8;              // products along K
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    static_assert(BK == 32 && BN % 64 == 0 && WM % 32 == 0 && WN % 32 == 0);
    constexpr int A_ROW = BK + (LAYOUT == PADDED ? 8 : 0), B_ROW = BN + (LAYOUT == PADDED ? 8 : 0);
    constexpr int A_BYTES = BM * A_ROW * 2, B_BYTES = BK * B_ROW * 2;
    __shared__ __align__(128) char shared[A_BYTES + B_BYTES];
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    TIMELINE_BEGIN;

    // Where (row, column) of a tile lies, in bytes. Eight halves are a chunk and stay together.
    auto in_a = [](int row, int col) {
        const int chunk = LAYOUT == XORED ? col / 8 ^ row / 2 % 4 : col / 8;
        return 2 * (row * A_ROW + chunk * 8 + col % 8);
    };
    auto in_b = [](int row, int col) {
        const int chunk = LAYOUT == XORED ? col / 8 ^ row % 8 : col / 8;
        return 2 * (row * B_ROW + chunk * 8 + col % 8);
    };

    char* const a_tiles = shared;
    char* const b_tiles = shared + A_BYTES;

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
    auto store_a = [&](int i, Pack<VEC> pack) {
        char* to = a_tiles + in_a(am + i * A_STEP, ak);
        store<VEC>(reinterpret_cast<half*>(to), pack);
    };
    auto store_b = [&](int i, Pack<VEC> pack) {
        char* to = b_tiles + in_b(bk + i * B_STEP, bn);
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
    auto put = [&]() {
#pragma unroll
        for (int i = 0; i < A_LOADS; ++i) store_a(i, a[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; ++i) store_b(i, b[i]);
    };
    // Single halves would not fit the registers while they wait: a few at a time, and at once.
    auto copy = [&](int left) {
        MARK(LOAD);
#pragma unroll 4
        for (int i = 0; i < A_LOADS; ++i) store_a(i, load_a(i, left));
#pragma unroll 4
        for (int i = 0; i < B_LOADS; ++i) store_b(i, load_b(i, left));
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    // Fragments of a depth of 8: a lane names a row of A in 32, and one of B in eight, by the four
    // chunks of a row. Two sets: one is loaded while the other is multiplied.
    unsigned a_k[2][TM / 2][4] = {}, b_k[2][TN / 4][4] = {};
    auto take = [&](int set, int step) {
#pragma unroll
        for (int i = 0; i < TM / 2; ++i)
            ldmatrix(a_k[set][i], shared_address(a_tiles + in_a(ty + 32 * i + lane, 8 * step)));
#pragma unroll
        for (int j = 0; j < TN / 4; ++j)
            ldmatrix_trans(b_k[set][j], shared_address(
                b_tiles + in_b(8 * step + lane % 8, tx + 32 * j + lane / 8 * 8)));
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

    if (PREFETCH) {
        MARK(LOAD);
        fetch(K);
    }
    for (int left = K; left > 0; left -= BK) {
        if (VEC == 1) {
            copy(left);
        } else {
            if (!PREFETCH) {
                MARK(LOAD);
                fetch(left);
            }
            MARK_ARRIVAL(a, b);
            put();
        }
        MARK(BARRIER);
        __syncthreads();  // the tiles are whole before anyone reads them
        if (PREFETCH) {
            MARK(LOAD);
            fetch(left - BK);
        }
        MARK(COMPUTE);
        take(0, 0);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step + 1 < STEPS) take((step + 1) % 2, step + 1);
            multiply(step % 2);
        }
        MARK(BARRIER);
        __syncthreads();  // everyone has read them before they are overwritten
    }

    MARK(STORE);
    constexpr int PAIR = VEC == 8 ? 2 : 1;  // a lane's neighbours in C, stored at once
    const int g = lane / 4, t = lane % 4 * 2;  // a lane's row and columns in a product
    const int row = row0 + ty + g, col = col0 + tx + t;
    float* to = &C[(size_t)row * N + col];
#pragma unroll
    for (int i = 0; i < 2 * TM; ++i) {
        if (row + 8 * i >= M) break;
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
            for (int c = 0; c < 2; c += PAIR)
                if (col + 8 * j + c < N)
                    update<PAIR>(&to[8 * j + c], alpha, &sum[i / 2][j][i % 2 * 2 + c], beta);
        to += (size_t)8 * N;
    }
    TIMELINE_END;
}
