// wgmma with A column by column: its rows run along M, and the tensor cores transpose them
// (sm_90a).
//
// As of a B that is row by row, the tile is cut into slabs of 64 along M, each with 64 rows of K;
// only types of 16 bits can be transposed. PTX ISA 9.7.15.
#pragma once

#include "wgmma.cuh"

// As WGMMA of wgmma.cuh, but A is transposed.
#define WGMMA_COLUMNS(shape, type, list, a, b, trans, ...) \
    asm volatile("{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n" \
                 "wgmma.mma_async.sync.aligned." shape ".f32." type "." type \
                 " {" list "}, " a ", " b ", add, 1, 1, 1, " trans ";\n}\n" \
                 : __VA_ARGS__ : "l"(a_tile), "l"(b_tile), "n"(TRANSPOSED))

// D += A · B for a tile of N columns; T is half or __nv_bfloat16.
template <int N, class T, bool B_BY_ROWS>
__device__ inline void wgmma_columns(float (&d)[N / 2], unsigned long long a_tile,
                                     unsigned long long b_tile)
{
    static_assert(N == 64 || N == 128 || N == 192 || N == 256);
    constexpr int TRANSPOSED = B_BY_ROWS;
#define WGMMA_COLUMNS_ANY(type) \
    if constexpr (N == 64) \
        WGMMA_COLUMNS("m64n64k16", type, WGMMA_D32_0, "%32", "%33", "%34", WGMMA_32(d, 0)); \
    if constexpr (N == 128) \
        WGMMA_COLUMNS("m64n128k16", type, WGMMA_D32_0 ", " WGMMA_D32_1, "%64", "%65", "%66", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32)); \
    if constexpr (N == 192) \
        WGMMA_COLUMNS("m64n192k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2, \
                      "%96", "%97", "%98", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64)); \
    if constexpr (N == 256) \
        WGMMA_COLUMNS("m64n256k16", type, \
                      WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D32_3, \
                      "%128", "%129", "%130", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_32(d, 96));
    if constexpr (is_half<T>) {
        WGMMA_COLUMNS_ANY("f16")
    } else {
        WGMMA_COLUMNS_ANY("bf16")
    }
#undef WGMMA_COLUMNS_ANY
}
