// From 14 to 15, with two buffers and one barrier a step: 15, but for C, which every lane writes
// from where its sums are, and for the order of tiles, which is row by row.
//
// Launch:  that of 15.
// Runs on: sm_75 and later.
//
// WALK:    a lane's addresses are made once and then XORed, as in 15; otherwise each is made from
//          row and column.
#include "halves.cuh"
#include "ldmatrix.cuh"
#include "mma.cuh"
#include "timeline.cuh"
#include "vector.cuh"

template <int BM, int BN, int BK, int WM, int WN, int VEC, bool WALK>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
turing_limit_two_buffers(
    int M, int N, int K, float alpha, const half* A, const half* B, float beta, float* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int TM = WM / 16, TN = WN / 8;  // products that make a warp's tile
    constexpr int STEPS = BK / 8;              // products along K
    constexpr int PUT = 1;  // the step before which prefetched tiles are stored
    constexpr int A_STEP = THREADS / (BK / VEC), B_STEP = THREADS / (BN / VEC);
    constexpr int A_LOADS = BM / A_STEP, B_LOADS = BK / B_STEP;
    static_assert(A_LOADS * VEC * THREADS == BM * BK && B_LOADS * VEC * THREADS == BK * BN);
    static_assert(BK == 32 && BN % 64 == 0 && WM % 32 == 0 && WN % 32 == 0);
    constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    __shared__ __align__(128) char shared[2 * (A_BYTES + B_BYTES)];
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int am = tid / (BK / VEC), ak = tid % (BK / VEC) * VEC;
    const int bk = tid / (BN / VEC), bn = tid % (BN / VEC) * VEC;
    const int ty = warp / (BN / WN) * WM, tx = warp % (BN / WN) * WN;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
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
    // chunks of a row. Two sets: one is loaded while the other is multiplied.
    const unsigned a_at = shared_address(a_tiles + in_a(ty + lane, 0));
    const unsigned b_at = shared_address(b_tiles + in_b(lane % 8, tx + lane / 8 * 8));
    unsigned a_k[2][TM / 2][4] = {}, b_k[2][TN / 4][4] = {};
    auto take = [&](int set, int buffer, int step) {
#pragma unroll
        for (int i = 0; i < TM / 2; ++i) {
            const char* row = a_tiles + buffer * A_BYTES + in_a(ty + 32 * i + lane, 8 * step);
            ldmatrix(a_k[set][i], WALK ? (a_at ^ step * 16) + buffer * A_BYTES + i * 32 * BK * 2
                                       : shared_address(row));
        }
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
            const char* row = b_tiles + buffer * B_BYTES
                            + in_b(8 * step + lane % 8, tx + 32 * j + lane / 8 * 8);
            ldmatrix_trans(b_k[set][j], WALK ? (b_at ^ j * 64) + buffer * B_BYTES + 16 * step * BN
                                             : shared_address(row));
        }
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
            // The next tiles arrived while the last ones were multiplied: nobody waits for them
            // here. Those after them are asked for at once, and have as long.
            if (VEC == 8 && step == PUT) {
                MARK_ARRIVAL(a, b);
                put(now ^ 1);
                MARK(LOAD);
                fetch(left - 2 * BK);
                MARK(COMPUTE);
            }
            // One step behind: a tile's last products are left for behind the barrier, where
            // they hide the first loads from the next one.
            take(step % 2, now, step);
            multiply(1 - step % 2);
        }
        MARK(BARRIER);
        __syncthreads();  // the next tiles are whole, and the present ones are in registers
        now ^= 1;
    }
    multiply(1);

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
