// 15 with 16's loop: what is left of 16 when registers carry the tiles in place of cp.async.
//
// Changes:    fragments of a depth of 16, loaded while those before them are multiplied; two tiles
//             in shared memory, a third in registers; each lane writes C from its sums.
// Bottleneck: 14's waits, for global memory, at barriers and for fragments.
// Launch:     grid ceil(M / BM) * ceil(N / BN), block 32 * BM / WM * BN / WN; any M, N, K. VEC = 8
//             asks for N and K that are multiples of 8 and pointers aligned to 16 bytes; VEC = 1
//             for nothing.
// Runs on:    sm_75 and later; with MMA_K = 16 sm_80 and later.
//
// TC:    type of C: float, or half.
// MMA_K: depth of a product, 8 or 16: mma.m16n8k8 twice, or mma.m16n8k16 once.
// GROUP: rows of tiles in a band of the raster.
#include "ldmatrix.cuh"
#include "pairs.cuh"
#include "product.cuh"
#include "raster.cuh"
#include "timeline.cuh"

// Eight halves, of which the first `inside` exist; the others become zeros.
template <int VEC>
__device__ inline uint4 read_chunk(const half* from, int inside)
{
    static_assert(VEC == 8 || VEC == 1);
    if constexpr (VEC == 8) {
        return inside > 0 ? *reinterpret_cast<const uint4*>(from) : uint4{};
    } else {
        const unsigned short* bits = reinterpret_cast<const unsigned short*>(from);
        unsigned words[4];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            const unsigned low = inside > i ? bits[i] : 0, high = inside > i + 1 ? bits[i + 1] : 0;
            words[i / 2] = low | high << 16;
        }
        return uint4{words[0], words[1], words[2], words[3]};
    }
}

template <class TC, int BM, int BN, int BK, int WM, int WN, int VEC, int MMA_K, int GROUP>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN))
turing_limit_k16(int M, int N, int K, float alpha, const half* A, const half* B, float beta, TC* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int A_CHUNKS = BK / 8, B_CHUNKS = BN / 8;  // of 16 bytes, in a row of a tile
    constexpr int A_STEP = THREADS / A_CHUNKS, B_STEP = THREADS / B_CHUNKS;  // rows a copy apart
    constexpr int A_COPIES = BM / A_STEP, B_COPIES = BK / B_STEP;
    constexpr int A_BYTES = BM * BK * 2, TILE_BYTES = A_BYTES + BK * BN * 2;
    constexpr int KS = BK / 16;  // products along K in a step
    static_assert(A_STEP % 8 == 0 && BM % A_STEP == 0 && BK % B_STEP == 0 && KS % 2 == 0);
    __shared__ __align__(128) char storage[2 * TILE_BYTES];
    const unsigned tiles = shared_address(storage);
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int2 tile = raster<GROUP>(blockIdx.x, (M + BM - 1) / BM, (N + BN - 1) / BN);
    const int row0 = tile.x * BM, col0 = tile.y * BN;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // the warp's, in the tile
    TIMELINE_BEGIN;

    // Where chunk c of row r lies. Eight rows under each other, which ldmatrix reads at once, must
    // meet eight different groups of four banks: XOR does it, and leaves the chunks in their row.
    auto in_a = [](int r, int c) { return (r * A_CHUNKS + (c ^ r * A_CHUNKS / 8 % A_CHUNKS)) * 16; };
    auto in_b = [](int r, int c) { return (r * B_CHUNKS + (c ^ r % 8)) * 16; };

    const int ar = tid / A_CHUNKS, ac = tid % A_CHUNKS, br = tid / B_CHUNKS, bc = tid % B_CHUNKS;
    char* to_a = storage + in_a(ar, ac);
    char* to_b = storage + A_BYTES + in_b(br, bc);
    const half* from_a = &A[(size_t)(row0 + ar) * K + ac * 8];
    const half* from_b = &B[(size_t)br * N + col0 + bc * 8];
    uint4 a_next[A_COPIES], b_next[B_COPIES];
    auto fetch = [&](int left) {  // the next tiles; `left` of K are inside
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_next[i] = read_chunk<VEC>(from_a + (size_t)(i * A_STEP) * K,
                                        row0 + ar + i * A_STEP < M ? left - ac * 8 : 0);
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_next[i] = read_chunk<VEC>(from_b + (size_t)(i * B_STEP) * N,
                                        br + i * B_STEP < left ? N - col0 - bc * 8 : 0);
        from_a += BK;
        from_b += (size_t)BK * N;
    };
    auto put = [&](unsigned buffer) {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            *reinterpret_cast<uint4*>(to_a + buffer + i * A_STEP * BK * 2) = a_next[i];
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            *reinterpret_cast<uint4*>(to_b + buffer + i * B_STEP * BN * 2) = b_next[i];
    };

    // Of A, lane l gives the address of row l % 16, and of the left or the right 8 of K; of B, that
    // of the row l % 16 of K, and of the left or the right 8 columns.
    unsigned a[2][WM / 16][4], b[2][WN / 16][4];
    auto load = [&](int set, unsigned buffer, int k) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            ldmatrix(a[set][i], tiles + buffer + in_a(row + lane % 16, k / 8 + lane / 16) +
                                    i * 16 * BK * 2);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            ldmatrix_trans(b[set][j], tiles + buffer + A_BYTES + k * BN * 2 +
                                          in_b(lane % 16, col / 8 + 2 * j + lane / 16));
    };

    MARK(LOAD);
    fetch(K);
    MARK_ARRIVAL(a_next, b_next);
    put(0);
    fetch(K - BK);
    MARK(BARRIER);
    __syncthreads();
    load(0, 0, 0);
    float sum[WM / 16][WN / 2] = {};
    unsigned now = 0;
    for (int left = K; left > 0; left -= BK) {
        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < KS; ++k) {
            if (k == KS - 1) {
                MARK(BARRIER);
                __syncthreads();  // the next step's tiles are whole, and this step's are read
                now ^= TILE_BYTES;
                MARK(COMPUTE);
            }
            load((k + 1) % 2, now, (k + 1) % KS * 16);
            if (k == 0) {  // the next tiles have had a whole step to arrive; so will those after
                MARK_ARRIVAL(a_next, b_next);
                put(now ^ TILE_BYTES);
                MARK(LOAD);
                fetch(left - 2 * BK);
                MARK(COMPUTE);
            }
#pragma unroll
            for (int h = 0; h < 16 / MMA_K; ++h)
#pragma unroll
                for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                    for (int j = 0; j < WN / 8; ++j)
                        mma<MMA_K>(reinterpret_cast<float (&)[4]>(sum[i][4 * j]), a[k % 2][i],
                                   &b[k % 2][j / 2][j % 2 * 2], h);
        }
    }

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
        update_fragment(C, M, N, row0 + row + 16 * i, col0 + col, alpha, sum[i], beta);
    TIMELINE_END;
}
