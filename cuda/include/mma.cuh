// One matrix product of a warp: sum += A B, A of 16×K and B of K×8 halves, 16×8 sums in FP32.
//
// Lane l has row l / 4 and its neighbours t = l % 4 (PTX ISA, matrix fragments for mma.m16n8k8 and
// mma.m16n8k16): with g = l / 4,
//   a[i]:   two halves of A, row g + 8 (i % 2), columns 2t and 2t + 1, + 8 (i / 2)
//   b[i]:   two halves of B, rows 2t and 2t + 1, + 8 i, column g
//   sum[i]: row g + 8 (i / 2), column 2t + i % 2
#pragma once

// K = 8: sm_75 and later.
__device__ inline void mma(float (&sum)[4], const unsigned (&a)[2], const unsigned (&b)[1])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

#if __CUDA_ARCH__ >= 800
// K = 16.
__device__ inline void mma(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
