// As operands.cuh; SWAPPED, 64 columns of B are multiplied by BM rows of A.
#pragma once

#include "operands.cuh"
#include "wgmma_swapped.cuh"

// A then lies by rows: its slabs, were they cut along M, would hold 64 rows and no fewer.
template <bool SWAPPED, int BM, int BN, class T, bool B_BY_ROWS, bool A_BY_ROWS = true, int SUMS>
__device__ inline void multiply(float (&sum)[SUMS], unsigned a, unsigned b, int k)
{
    static_assert(A_BY_ROWS || !SWAPPED);
    if constexpr (SWAPPED) wgmma_swapped<BM, T, B_BY_ROWS>(sum, of_b<B_BY_ROWS>(b, k), of_a(a, k));
    else multiply<BN, T, B_BY_ROWS, A_BY_ROWS>(sum, a, b, k);
}
