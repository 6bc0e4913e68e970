// One matrix product of a warp: sum += A B, A of 16×K and B of K×8 halves, 16×8 sums in FP32.
//
// Lane l has row l / 4 and its neighbours t = l % 4 (PTX ISA, matrix fragments for mma.m16n8k8 and
// mma.m16n8k16): with g = l / 4,
//   a0, a1 …: two halves of A each, ai: row g + 8 (i % 2), columns 2t and 2t + 1, + 8 (i / 2)
//   b0, b1:   two halves of B each, bi: rows 2t and 2t + 1, + 8 i, column g
//   sum[i]:   row g + 8 (i / 2), column 2t + i % 2
// So K = 16 is K = 8 twice: a0, a1, b0 and then a2, a3, b1.
#pragma once

// K = 8: sm_75 and later.
__device__ inline void mma_k8(float (&sum)[4], unsigned a0, unsigned a1, unsigned b0)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(b0));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // the host compiler reads it, too
// K = 16.
__device__ inline void mma_k16(
    float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// K = 16, A and B in bfloat16.
__device__ inline void mma_k16_bf16(
    float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif
