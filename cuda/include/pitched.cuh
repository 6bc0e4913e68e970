// C = alpha * sum + beta * C where rows of C lie `pitch` elements apart, of which N are C's.
#pragma once

#include "updates.cuh"

// Two neighbours of a row, of which the first `inside` lie in C; `even`: they are aligned as a pair.
template <class TC>
__device__ inline void update_two(TC* c, bool even, int inside, float alpha, float2 sum, float beta)
{
    if (even && inside > 1) update_pair<true>(c, inside, alpha, sum, beta);
    else update_pair<false>(c, inside, alpha, sum, beta);
}

// What a warp has of a tile, as update_tile has it: 16 rows and 2 * SUMS columns from (row, col) on,
// or, SWAPPED, 2 * SUMS rows and 16 columns.
template <bool SWAPPED, int SUMS, class TC>
__device__ inline void update_pitched(TC* C, int pitch, int M, int N, int row, int col, float alpha,
                                      const float (&sum)[SUMS], float beta)
{
    const int lane = threadIdx.x % 32;
    const bool even = begins_on<2 * sizeof(TC)>(C, pitch);
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        const int along = lane / 4 + i / 2 % 2 * 8, across = i / 4 * 8 + lane % 4 * 2;
        if constexpr (SWAPPED) {  // neighbours of a column
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int y = row + across + j, x = col + along;
                if (y < M && x < N)
                    update_pair<false>(&C[(size_t)y * pitch + x], 1, alpha,
                                       make_float2(sum[i + j], 0.0f), beta);
            }
        } else {
            const int y = row + along, x = col + across;
            update_two(&C[(size_t)y * pitch + x], even, y < M ? N - x : 0, alpha,
                       make_float2(sum[i], sum[i + 1]), beta);
        }
    }
}
