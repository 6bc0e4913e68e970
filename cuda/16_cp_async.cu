// 16: tiles for steps to come are on their way while this step's are multiplied.
//
// Changes:    cp.async copies past the registers into a ring of STAGES tiles; ldmatrix reads them
//             from a swizzled layout without conflicts; mma.m16n8k16; the fragments of the next 16
//             of K are loaded while these are multiplied.
// Bottleneck: the registers and the instructions that carried each tile, and the one tile that they
//             could carry ahead.
// Launch:     grid ceil(M / BM) * ceil(N / BN), block 32 * BM / WM * BN / WN, dynamic shared memory
//             for STAGES tiles; any M, N, K. VEC = 8, 4 or 2 asks for N and K that are multiples of
//             it and for pointers aligned to as many elements; VEC = 1 for nothing.
// Runs on:    sm_80 and later.
//
// T, TC:      type of A and B, half or __nv_bfloat16; type of C: float, or T.
// STAGES:     tiles in the ring: one in use, the others on their way or waiting.
// BLOCKS:     blocks that the compiler must leave registers for on one SM.
// GROUP:      rows of tiles in a band of the raster.
// MMA_K:      depth of a product, 8 or 16: mma.m16n8k8 twice, or mma.m16n8k16 once.
// PAST_L1:    16-byte copies go past the L1, not through it.
// VEC:        elements that one copy moves.
#include "cp_async.cuh"
#include "ldmatrix.cuh"
#include "pairs.cuh"
#include "product.cuh"
#include "raster.cuh"
#include "timeline.cuh"

template <class T, class TC, int BM, int BN, int BK, int WM, int WN, int STAGES, int BLOCKS,
          int GROUP, bool PAST_L1, int MMA_K, int VEC>
__global__ void __launch_bounds__(32 * (BM / WM) * (BN / WN), BLOCKS)
cp_async(int M, int N, int K, float alpha, const T* A, const T* B, float beta, TC* C)
{
    constexpr int THREADS = 32 * (BM / WM) * (BN / WN);
    constexpr int A_CHUNKS = BK / 8, B_CHUNKS = BN / 8;  // of 16 bytes, in a row of a tile
    constexpr int A_STEP = THREADS / A_CHUNKS, B_STEP = THREADS / B_CHUNKS;  // rows a copy apart
    constexpr int A_COPIES = BM / A_STEP, B_COPIES = BK / B_STEP;
    constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;
    constexpr int KS = BK / 16;  // products along K in a step
    static_assert(A_STEP % 8 == 0 && BM % A_STEP == 0 && BK % B_STEP == 0 && KS % 2 == 0);
    static_assert(is_half<T> || MMA_K == 16);
    extern __shared__ __align__(128) unsigned char storage[];
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
    const unsigned to_a = tiles + in_a(ar, ac), to_b = tiles + A_BYTES + in_b(br, bc);
    const T* from_a = &A[(size_t)(row0 + ar) * K + ac * 8];
    const T* from_b = &B[(size_t)br * N + col0 + bc * 8];
    constexpr int UNROLL = VEC > 1 ? 16 : 1;  // single elements take registers on their way
    auto fetch = [&](unsigned stage, int left) {  // the next tiles; `left` of K are inside
#pragma unroll UNROLL
        for (int i = 0; i < A_COPIES; ++i)
            copy_chunk<VEC, PAST_L1>(to_a + stage + i * A_STEP * BK * 2,
                                     from_a + (size_t)(i * A_STEP) * K,
                                     row0 + ar + i * A_STEP < M ? left - ac * 8 : 0);
#pragma unroll UNROLL
        for (int i = 0; i < B_COPIES; ++i)
            copy_chunk<VEC, PAST_L1>(to_b + stage + i * B_STEP * BN * 2,
                                     from_b + (size_t)(i * B_STEP) * N,
                                     br + i * B_STEP < left ? N - col0 - bc * 8 : 0);
        copies_commit();
        from_a += BK;
        from_b += (size_t)BK * N;
    };

    // Of A, lane l gives the address of row l % 16, and of the left or the right 8 of K; of B, that
    // of the row l % 16 of K, and of the left or the right 8 columns.
    unsigned a[2][WM / 16][4], b[2][WN / 16][4];
    auto load = [&](int buffer, unsigned stage, int k) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            ldmatrix(a[buffer][i], tiles + stage + in_a(row + lane % 16, k / 8 + lane / 16) +
                                       i * 16 * BK * 2);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            ldmatrix_trans(b[buffer][j], tiles + stage + A_BYTES + k * BN * 2 +
                                                  in_b(lane % 16, col / 8 + 2 * j + lane / 16));
    };

    MARK(LOAD);
    for (int s = 0; s < STAGES - 1; ++s) fetch(s * STAGE_BYTES, K - s * BK);
    MARK(WAIT);
    copies_wait<STAGES - 2>();
    __syncthreads();
    load(0, 0, 0);
    float sum[WM / 16][WN / 2] = {};
    unsigned reading = 0, writing = (STAGES - 1) * STAGE_BYTES;
    for (int left = K; left > 0; left -= BK) {
        MARK(COMPUTE);
#pragma unroll
        for (int k = 0; k < KS; ++k) {
            if (k == KS - 1) {
                MARK(WAIT);
                copies_wait<STAGES - 2>();  // the next step's tiles are here,
                __syncthreads();            // everyone's part of them, and this step's are read
                reading = reading == (STAGES - 1) * STAGE_BYTES ? 0 : reading + STAGE_BYTES;
                MARK(COMPUTE);
            }
            load((k + 1) % 2, reading, (k + 1) % KS * 16);
            if (k == 0) {
                fetch(writing, left - (STAGES - 1) * BK);
                writing = writing == (STAGES - 1) * STAGE_BYTES ? 0 : writing + STAGE_BYTES;
            }
#pragma unroll
            for (int h = 0; h < 16 / MMA_K; ++h)
#pragma unroll
                for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                    for (int j = 0; j < WN / 8; ++j) {
                        float (&d)[4] = reinterpret_cast<float (&)[4]>(sum[i][4 * j]);
                        const unsigned* x = a[k % 2][i];
                        const unsigned* y = &b[k % 2][j / 2][j % 2 * 2];
                        if constexpr (is_half<T>) mma<MMA_K>(d, x, y, h);
                        else mma_k16_bf16(d, x[0], x[1], x[2], x[3], y[0], y[1]);
                    }
        }
    }
    copies_wait<0>();  // no copy is on its way into a block that is gone

    MARK(STORE);
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
        update_fragment(C, M, N, row0 + row + 16 * i, col0 + col, alpha, sum[i], beta);
    TIMELINE_END;
}
