// ldmatrix: a warp loads four 8×8 matrices of 16-bit elements as tensor cores want them (sm_75).
//
// Lane l gives the shared address of row l % 8 of matrix l / 8, 16 bytes; of each matrix it gets
// the elements 2 (l % 4) and the next one of row l / 4, or of column l / 4 if transposed.
// PTX ISA 9.7.14.5.15.
#pragma once

#include "shared.cuh"

__device__ inline void ldmatrix(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}

__device__ inline void ldmatrix_transposed(unsigned (&to)[4], unsigned row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row) : "memory");
}
