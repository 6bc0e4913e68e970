// Tiles whose columns are any multiple of 16, of a B that is column by column: products and stores.
#pragma once

#include "operands.cuh"
#include "slices.cuh"
#include "updates.cuh"
#include "wgmma_widths.cuh"

// The COUNT sums from `FIRST` on.
template <int FIRST, int COUNT, int SUMS>
__device__ inline auto some(const float (&sum)[SUMS]) -> const float (&)[COUNT]
{
    static_assert(FIRST + COUNT <= SUMS);
    return reinterpret_cast<const float(&)[COUNT]>(sum[FIRST]);
}

template <int FIRST, int COUNT, int SUMS>
__device__ inline auto some(float (&sum)[SUMS]) -> float (&)[COUNT]
{
    static_assert(FIRST + COUNT <= SUMS);
    return reinterpret_cast<float(&)[COUNT]>(sum[FIRST]);
}

// D += A · B for 16 of K, of the stage whose tiles lie at `a` and `b`; more columns than one
// instruction has are two halves.
template <int BN, class T>
__device__ inline void multiply_width(float (&sum)[BN / 2], unsigned a, unsigned b, int k)
{
    if constexpr (BN > 256) {
        multiply_width<BN / 2, T>(some<0, BN / 4>(sum), a, b, k);
        multiply_width<BN / 2, T>(some<BN / 4, BN / 4>(sum), a, b + BN / 2 * 128, k);
    } else if constexpr (BN % 64 == 0) {
        wgmma<BN, T, false>(sum, of_a(a, k), of_b<false>(b, k));
    } else {
        wgmma_width<BN, T>(sum, of_a(a, k), of_b<false>(b, k));
    }
}

// What a warp has of a tile, the 16 rows of C from `row` on and 2 * SUMS columns: 64 columns at a
// time, 32 and 16, as stores of 16 bytes go by 32 and those of sums in registers by 64.
template <int SUMS, class TC>
__device__ inline void update_width(TC* C, int M, int N, int row, int col, float alpha,
                                    const float (&sum)[SUMS], float beta)
{
    static_assert(SUMS % 8 == 0);
    if constexpr (SUMS == 8) {
        update_fragment(C, M, N, row, col, alpha, sum, beta);
    } else if constexpr (SUMS == 16 || SUMS == 32) {
        update_tile<false>(C, M, N, row, col, alpha, sum, beta);
    } else {
        constexpr int FIRST = SUMS > 32 ? 32 : 16;
        update_width(C, M, N, row, col, alpha, some<0, FIRST>(sum), beta);
        update_width(C, M, N, row, col + 2 * FIRST, alpha, some<FIRST, SUMS - FIRST>(sum), beta);
    }
}

// A warpgroup's 64 rows of C from `row` on: whole slices through shared memory, STAGED at a time,
// and what is left of the columns from registers.
template <bool READS, int STAGED, int SUMS, class TC>
__device__ inline void store_width(const TensorMap& C_map, unsigned staging, TC* C, int M, int N,
                                   int row, int col, float alpha, const float (&sum)[SUMS],
                                   float beta, int warpgroup)
{
    constexpr int SLICE = 64 / sizeof(TC), WHOLE = SUMS / SLICE * SLICE;  // sums
    if constexpr (WHOLE > 0)
        store_slices<READS, STAGED>(C_map, staging, C, M, N, row, col, alpha, some<0, WHOLE>(sum),
                                    beta, warpgroup);
    if constexpr (WHOLE < SUMS)
        update_width(C, M, N, row + threadIdx.x / 32 % 4 * 16, col + 2 * WHOLE, alpha,
                     some<WHOLE, SUMS - WHOLE>(sum), beta);
}
