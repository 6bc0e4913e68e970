// A step's products of two tiles in shared memory, with as few instructions around them as can be.
#pragma once

#include "wgmma.cuh"
#include "wgmma_columns.cuh"

// An address that all lanes have, and that the compiler keeps in a register: it would work that of
// an mbarrier out anew in every step.
__device__ inline unsigned kept(unsigned address)
{
    return __shfl_sync(0xffffffff, address, 0);
}

// The descriptor of what lies so many bytes behind: one addition, as its low bits are the address.
__device__ inline unsigned long long behind(unsigned long long descriptor, int bytes)
{
    return descriptor >> 32 << 32 | unsigned(descriptor) + bytes / 16;
}

// 16 of K, from `k` on: 64 rows of A's tile at `a`, by rows of 64 elements, or by columns in slabs of
// 64 rows.
template <bool A_BY_ROWS = true>
__device__ inline unsigned long long of_a(unsigned a, int k)
{
    return A_BY_ROWS ? behind(k_major(a), k * 2) : behind(n_major(a, 64), k * 128);
}

// And of B's tile at `b`, by rows in slabs of 64 columns, or by columns of 64 elements.
template <bool B_BY_ROWS>
__device__ inline unsigned long long of_b(unsigned b, int k)
{
    return B_BY_ROWS ? behind(n_major(b, 64), k * 128) : behind(k_major(b), k * 2);
}

// D += A · B for 16 of K, of the stage whose tiles lie at `a` and `b`.
template <int BN, class T, bool B_BY_ROWS, bool A_BY_ROWS = true>
__device__ inline void multiply(float (&sum)[BN / 2], unsigned a, unsigned b, int k)
{
    if constexpr (A_BY_ROWS)
        wgmma<BN, T, B_BY_ROWS>(sum, of_a(a, k), of_b<B_BY_ROWS>(b, k));
    else
        wgmma_columns<BN, T, B_BY_ROWS>(sum, of_a<false>(a, k), of_b<B_BY_ROWS>(b, k));
}
