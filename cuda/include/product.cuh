// What 16×16 of A and 16×8 of B, in the registers of a warp as mma.cuh has them, add to 16×8 sums:
// one product of a depth of 16, or two of a depth of 8.
#pragma once

#include "mma.cuh"

// The h-th of 16 / MMA_K products. mma.m16n8k16 needs sm_80.
template <int MMA_K>
__device__ inline void mma(float (&sum)[4], const unsigned* a, const unsigned* b, int h)
{
    static_assert(MMA_K == 8 || MMA_K == 16);
#if __CUDA_ARCH__ >= 800
    if constexpr (MMA_K == 16) mma_k16(sum, a[0], a[1], a[2], a[3], b[0], b[1]);
    else
#endif
        mma_k8(sum, a[2 * h], a[2 * h + 1], b[h]);
}
