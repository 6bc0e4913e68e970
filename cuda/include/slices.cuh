// C = alpha * sum + beta * C through shared memory and TMA: whole rows of 128 bytes leave, where
// threads would store 8 bytes each.
#pragma once

#include "barrier.cuh"
#include "pairs.cuh"
#include "stmatrix.cuh"
#include "tma.cuh"

constexpr int SLICE_BYTES = 64 * 128;

// A warpgroup's 64×N sums, as slices whose rows have 128 bytes: from registers to shared memory,
// and from there by the copy engine. `staging` is room for BUFFERS slices, which the warpgroup's
// first thread knows to have been read before they are written again. READS: beta is not 0;
// otherwise C isn't read.
template <bool READS, int BUFFERS, int SUMS, class TC>
__device__ inline void store_slices(const TensorMap& C_map, unsigned staging, const TC* C, int M,
                                    int N, int row, int col, float alpha, const float (&sum)[SUMS],
                                    float beta, int warpgroup)
{
    constexpr int COLS = 128 / sizeof(TC), BLOCKS = COLS / 8;
    static_assert(SUMS * 2 / COLS % BUFFERS == 0);
    using Pair = typename PairOf<TC>::type;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int y = row + warp * 16 + lane / 4, x = col + lane % 4 * 2;
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int slice = 0; slice < SUMS * 2 / COLS; ++slice) {
        const unsigned buffer = staging + slice % BUFFERS * SLICE_BYTES;
        Pair pairs[BLOCKS][2];  // of each 8 columns, in this row and 8 rows below
        float2 old[BLOCKS][2];
        if constexpr (READS) {
#pragma unroll
            for (int i = 0; i < 2 * BLOCKS; ++i) {
                const int r = y + i % 2 * 8, c = x + slice * COLS + i / 2 * 8;
                old[i / 2][i % 2] = read_pair<true>(&C[(size_t)r * N + c], r < M ? N - c : 0);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * BLOCKS; ++i) {
            const float* s = &sum[4 * (slice * BLOCKS + i / 2) + i % 2 * 2];
            float2 pair = make_float2(alpha * s[0], alpha * s[1]);
            if constexpr (READS)
                pair.x += beta * old[i / 2][i % 2].x, pair.y += beta * old[i / 2][i % 2].y;
            narrow(pairs[i / 2][i % 2], pair);
        }
        if (leader) tma_wait_read<BUFFERS - 1>();  // what was in this buffer has left it
        barrier_sync(1 + warpgroup, 128);
        if constexpr (sizeof(TC) == 2) {
            // Lane l's row of matrix l / 8: 16 rows, and then the next chunk of 8 columns.
            const int r = warp * 16 + lane % 16;
#pragma unroll
            for (int j = 0; j < BLOCKS; j += 2)
                stmatrix(buffer + r * 128 + ((j + lane / 16) ^ r % 8) * 16,
                         reinterpret_cast<const unsigned (&)[4]>(pairs[j]));
        } else {
            const int r = warp * 16 + lane / 4;
#pragma unroll
            for (int i = 0; i < 2 * BLOCKS; ++i) {
                const int chunk = i / 2 * 2 + lane % 4 / 2;
                const unsigned to = buffer + (r + i % 2 * 8) * 128 + (chunk ^ r % 8) * 16;
                const float2& pair = reinterpret_cast<const float2&>(pairs[i / 2][i % 2]);
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                             ::"r"(to + lane % 2 * 8), "f"(pair.x), "f"(pair.y) : "memory");
            }
        }
        fence_async_proxy();
        barrier_sync(1 + warpgroup, 128);
        if (leader) {
            tma_store(C_map, buffer, row, col + slice * COLS);
            tma_commit();
        }
    }
}
