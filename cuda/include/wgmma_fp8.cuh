// wgmma of 8-bit floats, E4M3: 32 of K at a time, both operands with rows along K (sm_90a).
//
// A row of 128 bytes has 128 elements, swizzled as `wgmma.cuh` says; 8-bit operands can't be
// transposed. The tensor cores cut off what they add 13 bits below the largest term, so that of D
// that many bits are kept, too. PTX ISA 9.7.15.
#pragma once

#include "operands.cuh"

// `add`: whether D is added to; otherwise what it holds doesn't matter.
#define WGMMA_E4M3(shape, list, a, b, add, ...) \
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " add ", 0;\n" \
                 "wgmma.mma_async.sync.aligned." shape ".f32.e4m3.e4m3" \
                 " {" list "}, " a ", " b ", adds, 1, 1;\n}\n" __VA_ARGS__)

// D = A · B, or D += A · B, for 64 rows, a tile of N columns and 32 of K.
template <int N>
__device__ inline void wgmma_e4m3(float (&d)[N / 2], unsigned long long a, unsigned long long b,
                                  int add)
{
    static_assert(N == 32 || N == 64 || N == 128 || N == 256);
    if constexpr (N == 32)
        WGMMA_E4M3("m64n32k32",
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15",
                   "%16", "%17", "%18",
                   : WGMMA_8(d, 0), WGMMA_8(d, 8) : "l"(a), "l"(b), "r"(add));
    if constexpr (N == 64)
        WGMMA_E4M3("m64n64k32", WGMMA_D32_0, "%32", "%33", "%34",
                   : WGMMA_32(d, 0) : "l"(a), "l"(b), "r"(add));
    if constexpr (N == 128)
        WGMMA_E4M3("m64n128k32", WGMMA_D32_0 ", " WGMMA_D32_1, "%64", "%65", "%66",
                   : WGMMA_32(d, 0), WGMMA_32(d, 32) : "l"(a), "l"(b), "r"(add));
    if constexpr (N == 256)
        WGMMA_E4M3("m64n256k32",
                   WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D32_3,
                   "%128", "%129", "%130",
                   : WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_32(d, 96)
                   : "l"(a), "l"(b), "r"(add));
}

// A group of the products of 128 of K: 64 rows of A at `a`, N columns of B at `b`. Unless `adds`,
// D is what they are.
template <int N>
__device__ inline void multiply_e4m3(float (&d)[N / 2], unsigned a, unsigned b, bool adds)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 128; k += 32)
        wgmma_e4m3<N>(d, behind(k_major(a), k), behind(k_major(b), k), adds || k > 0);
    wgmma_commit();
}
