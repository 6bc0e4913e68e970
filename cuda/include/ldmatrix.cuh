// ldmatrix: a warp reads four 8×8 matrices of halves from shared memory.
//
// Lanes 8i … 8i + 7 give the addresses of the rows of matrix i, 16 bytes each. Of each matrix lane
// l then has two neighbours: row l / 4, columns 2 (l % 4) and the next; with `trans` of its
// transpose. So four lie in `to` as mma.cuh wants its fragments.
#pragma once

#include "shared.cuh"

__device__ inline void ldmatrix(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}

__device__ inline void ldmatrix_trans(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
}
