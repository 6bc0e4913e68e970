// stmatrix: a warp stores four 8×8 matrices of 16-bit elements as tensor cores hold them (sm_90).
#pragma once

// Lane l gives the shared address of row l % 8 of matrix l / 8, 16 bytes; of each matrix it gives
// the elements 2 (l % 4) and the next one of row l / 4. PTX ISA 9.7.14.5.16.
__device__ inline void stmatrix(unsigned row, const unsigned (&matrices)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(row), "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
                 : "memory");
}
