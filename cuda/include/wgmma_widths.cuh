// wgmma of widths between the multiples of 64 columns, for a B that is column by column (sm_90a).
//
// wgmma takes any multiple of 8 columns. A B that is row by row comes in slabs of 64 columns, which
// such a width would cut; column by column its rows of 64 elements of K have no such bounds. More
// than 256 columns are two products. PTX ISA 9.7.15.
#pragma once

#include "wgmma.cuh"

#define WGMMA_D8_2 \
    "%32, %33, %34, %35, %36, %37, %38, %39"
#define WGMMA_D16_2 WGMMA_D8_2 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_D24_2 WGMMA_D16_2 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define WGMMA_D8_4 "%64, %65, %66, %67, %68, %69, %70, %71"
#define WGMMA_D16_4 WGMMA_D8_4 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define WGMMA_D24_4 WGMMA_D16_4 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define WGMMA_D8_6 "%96, %97, %98, %99, %100, %101, %102, %103"
#define WGMMA_D16_6 WGMMA_D8_6 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define WGMMA_16(d, i) WGMMA_8(d, i), WGMMA_8(d, i + 8)
#define WGMMA_24(d, i) WGMMA_16(d, i), WGMMA_8(d, i + 16)

#define WGMMA_WIDTH(shape, type, list, a, b, trans, ...) \
    WGMMA(shape, type, list, a, b, trans, : __VA_ARGS__ : "l"(a_tile), "l"(b_tile), "n"(0))

// D += A · B for a tile of N columns, `columns` of which begin at each descriptor of B that
// wgmma_wide makes; T is half or __nv_bfloat16.
template <int N, class T>
__device__ inline void wgmma_width(float (&d)[N / 2], unsigned long long a_tile,
                                   unsigned long long b_tile)
{
    static_assert(N == 80 || N == 96 || N == 112 || N == 144 || N == 160 || N == 176 || N == 208 ||
                  N == 224);
#define WGMMA_WIDTHS(type) \
    if constexpr (N == 80) \
        WGMMA_WIDTH("m64n80k16", type, WGMMA_D32_0 ", " WGMMA_D8_2, "%40", "%41", "%42", \
                    WGMMA_32(d, 0), WGMMA_8(d, 32)); \
    if constexpr (N == 96) \
        WGMMA_WIDTH("m64n96k16", type, WGMMA_D32_0 ", " WGMMA_D16_2, "%48", "%49", "%50", \
                    WGMMA_32(d, 0), WGMMA_16(d, 32)); \
    if constexpr (N == 112) \
        WGMMA_WIDTH("m64n112k16", type, WGMMA_D32_0 ", " WGMMA_D24_2, "%56", "%57", "%58", \
                    WGMMA_32(d, 0), WGMMA_24(d, 32)); \
    if constexpr (N == 144) \
        WGMMA_WIDTH("m64n144k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D8_4, "%72", \
                    "%73", "%74", WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_8(d, 64)); \
    if constexpr (N == 160) \
        WGMMA_WIDTH("m64n160k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D16_4, "%80", \
                    "%81", "%82", WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_16(d, 64)); \
    if constexpr (N == 176) \
        WGMMA_WIDTH("m64n176k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D24_4, "%88", \
                    "%89", "%90", WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_24(d, 64)); \
    if constexpr (N == 208) \
        WGMMA_WIDTH("m64n208k16", type, \
                    WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D8_6, "%104", \
                    "%105", "%106", WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), \
                    WGMMA_8(d, 96)); \
    if constexpr (N == 224) \
        WGMMA_WIDTH("m64n224k16", type, \
                    WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D16_6, "%112", \
                    "%113", "%114", WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), \
                    WGMMA_16(d, 96));
    if constexpr (is_half<T>) {
        WGMMA_WIDTHS("f16")
    } else {
        WGMMA_WIDTHS("bf16")
    }
#undef WGMMA_WIDTHS
}
