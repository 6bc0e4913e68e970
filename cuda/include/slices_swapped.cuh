// As slices.cuh, for sums of a wgmma whose operands are swapped: C's tile lies transposed in them.
#pragma once

#include "slices.cuh"

// stmatrix, each 8×8 matrix transposed: lane l gives the address of row l % 8 of matrix l / 8 as it
// will lie, and of each the elements 2 (l % 4) and the next one of the column l / 4.
__device__ inline void stmatrix_transposed(unsigned row, const unsigned (&matrices)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(row), "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
                 : "memory");
}

// A warpgroup's 64 columns and 2 * SUMS rows of C, 32 rows at a time, or 16 where 32 don't divide
// them. A buffer holds 64 columns of these: rows of 128 bytes, or of float two halves of 32 columns,
// one behind the other.
template <bool READS, int BUFFERS, int SUMS, class TC>
__device__ inline void store_columns(const TensorMap& C_map, unsigned staging, const TC* C, int M,
                                     int N, int row, int col, float alpha,
                                     const float (&sum)[SUMS], float beta, int warpgroup)
{
    constexpr int ROWS = SUMS % 16 ? 16 : 32, COLS = 128 / sizeof(TC), SLICES = SUMS * 2 / ROWS;
    constexpr int HALF_BYTES = ROWS * 128;
    static_assert(SUMS * 2 % ROWS == 0 && SLICES % BUFFERS == 0);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int slice = 0; slice < SLICES; ++slice) {
        const unsigned buffer = staging + slice % BUFFERS * SLICE_BYTES;
        float out[ROWS / 2];  // this lane's, as it holds the sums: see update_columns
#pragma unroll
        for (int i = 0; i < ROWS / 2; ++i) {
            out[i] = alpha * sum[slice * ROWS / 2 + i];
            if constexpr (READS) {
                const int y = row + slice * ROWS + i / 4 * 8 + lane % 4 * 2 + i % 2;
                const int x = col + warp * 16 + lane / 4 + i / 2 % 2 * 8;
                if (y < M && x < N) out[i] += beta * float(C[(size_t)y * N + x]);
            }
        }
        if (leader) tma_wait_read<BUFFERS - 1>();  // what was in this buffer has left it
        barrier_sync(1 + warpgroup, 128);
        if constexpr (sizeof(TC) == 2) {
            typename PairOf<TC>::type pairs[ROWS / 4];
#pragma unroll
            for (int i = 0; i < ROWS / 4; ++i)
                narrow(pairs[i], make_float2(out[2 * i], out[2 * i + 1]));
            // Lane l's row of matrix l / 8: 8 rows of 8 columns, the next 8 columns, 8 rows more.
#pragma unroll
            for (int j = 0; j < ROWS / 4; j += 4) {
                const int r = j * 4 + lane / 16 * 8 + lane % 8, chunk = warp * 2 + lane / 8 % 2;
                stmatrix_transposed(buffer + r * 128 + (chunk ^ r % 8) * 16,
                                    reinterpret_cast<const unsigned (&)[4]>(pairs[j]));
            }
        } else {
#pragma unroll
            for (int i = 0; i < ROWS / 2; ++i) {
                const int r = i / 4 * 8 + lane % 4 * 2 + i % 2;
                const int x = warp % 2 * 16 + lane / 4 + i / 2 % 2 * 8;
                const unsigned to = buffer + warp / 2 * HALF_BYTES + r * 128 +
                                    (x / 4 ^ r % 8) * 16 + x % 4 * 4;
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(out[i]) : "memory");
            }
        }
        fence_async_proxy();
        barrier_sync(1 + warpgroup, 128);
        if (leader) {
#pragma unroll
            for (int x = 0; x < 64; x += COLS)
                tma_store(C_map, buffer + x / COLS * HALF_BYTES, row + slice * ROWS, col + x);
            tma_commit();
        }
    }
}

// A warpgroup's part of a tile: 64 rows, or, swapped, 64 columns.
template <bool SWAPPED, bool READS, int BUFFERS, int SUMS, class TC>
__device__ inline void store_tile(const TensorMap& C_map, unsigned staging, const TC* C, int M,
                                  int N, int row, int col, float alpha, const float (&sum)[SUMS],
                                  float beta, int warpgroup)
{
    if constexpr (SWAPPED)
        store_columns<READS, BUFFERS>(C_map, staging, C, M, N, row, col, alpha, sum, beta,
                                      warpgroup);
    else
        store_slices<READS, BUFFERS>(C_map, staging, C, M, N, row, col, alpha, sum, beta,
                                     warpgroup);
}
