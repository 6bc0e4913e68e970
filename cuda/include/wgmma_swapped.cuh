// wgmma with the tiles' roles swapped: 64 columns of B times a tile of A's rows (sm_90a).
//
// wgmma's first operand has 64 rows, its second any multiple of 8 columns. Where C has few rows, or
// a number that 64 divides badly, B's columns are the first and A's rows the second, and C's tile
// comes out transposed. A, row by row, is K-major as a second operand too; the rows of a B that is
// row-major run along the first operand's 64, and the tensor cores transpose them. PTX ISA 9.7.15.
#pragma once

#include "wgmma.cuh"

#define WGMMA_D4 \
    "%0, %1, %2, %3"
#define WGMMA_D8 \
    "%0, %1, %2, %3, %4, %5, %6, %7"
#define WGMMA_D12 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
#define WGMMA_D16 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_D20 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19"
#define WGMMA_D24 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19, %20, %21, %22, %23"
#define WGMMA_D8_4 \
    "%32, %33, %34, %35, %36, %37, %38, %39"
#define WGMMA_D16_2 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_D16_4 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WGMMA_D24_4 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
    "%82, %83, %84, %85, %86, %87"
#define WGMMA_D16_6 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WGMMA_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_16(d, i) WGMMA_8(d, i), WGMMA_8(d, i + 8)

// The operands behind the accumulators: both descriptors, whether to add to D (always), the signs
// of both (+), whether the first is transposed (if B's rows run along N) and the second (never).
#define WGMMA_SWAPPED(shape, type, list, first, second, transposed, ...) \
    asm volatile("{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n" \
                 "wgmma.mma_async.sync.aligned." shape ".f32." type "." type \
                 " {" list "}, " first ", " second ", add, 1, 1, " transposed ", 0;\n}\n" \
                 : __VA_ARGS__ : "l"(b), "l"(a), "n"(TRANSPOSED))

// D (64 columns of C × ROWS rows) += 64 columns of B · ROWS rows of A. T: half or __nv_bfloat16.
template <int ROWS, class T, bool B_BY_ROWS>
__device__ inline void wgmma_swapped(float (&d)[ROWS / 2], unsigned long long b,
                                     unsigned long long a)
{
    constexpr int TRANSPOSED = B_BY_ROWS;
    static_assert(ROWS == 8 || ROWS == 16 || ROWS == 24 || ROWS == 32 || ROWS == 40 ||
                  ROWS == 48 || ROWS == 64 || ROWS == 80 || ROWS == 96 || ROWS == 128 ||
                  ROWS == 160 || ROWS == 176 || ROWS == 192 || ROWS == 224 || ROWS == 256);
#define WGMMA_SWAPPED_ANY(type) \
    if constexpr (ROWS == 8) \
        WGMMA_SWAPPED("m64n8k16", type, WGMMA_D4, "%4", "%5", "%6", \
                      WGMMA_4(d, 0)); \
    if constexpr (ROWS == 16) \
        WGMMA_SWAPPED("m64n16k16", type, WGMMA_D8, "%8", "%9", "%10", \
                      WGMMA_8(d, 0)); \
    if constexpr (ROWS == 24) \
        WGMMA_SWAPPED("m64n24k16", type, WGMMA_D12, "%12", "%13", "%14", \
                      WGMMA_8(d, 0), WGMMA_4(d, 8)); \
    if constexpr (ROWS == 32) \
        WGMMA_SWAPPED("m64n32k16", type, WGMMA_D16, "%16", "%17", "%18", \
                      WGMMA_16(d, 0)); \
    if constexpr (ROWS == 40) \
        WGMMA_SWAPPED("m64n40k16", type, WGMMA_D20, "%20", "%21", "%22", \
                      WGMMA_16(d, 0), WGMMA_4(d, 16)); \
    if constexpr (ROWS == 48) \
        WGMMA_SWAPPED("m64n48k16", type, WGMMA_D24, "%24", "%25", "%26", \
                      WGMMA_16(d, 0), WGMMA_8(d, 16)); \
    if constexpr (ROWS == 64) \
        WGMMA_SWAPPED("m64n64k16", type, WGMMA_D32_0, "%32", "%33", "%34", \
                      WGMMA_32(d, 0)); \
    if constexpr (ROWS == 80) \
        WGMMA_SWAPPED("m64n80k16", type, WGMMA_D32_0 ", " WGMMA_D8_4, "%40", "%41", "%42", \
                      WGMMA_32(d, 0), WGMMA_8(d, 32)); \
    if constexpr (ROWS == 96) \
        WGMMA_SWAPPED("m64n96k16", type, WGMMA_D32_0 ", " WGMMA_D16_2, "%48", "%49", "%50", \
                      WGMMA_32(d, 0), WGMMA_16(d, 32)); \
    if constexpr (ROWS == 128) \
        WGMMA_SWAPPED("m64n128k16", type, WGMMA_D32_0 ", " WGMMA_D32_1, "%64", "%65", "%66", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32)); \
    if constexpr (ROWS == 160) \
        WGMMA_SWAPPED("m64n160k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D16_4, \
                      "%80", "%81", "%82", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_16(d, 64)); \
    if constexpr (ROWS == 176) \
        WGMMA_SWAPPED("m64n176k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D24_4, \
                      "%88", "%89", "%90", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_16(d, 64), WGMMA_8(d, 80)); \
    if constexpr (ROWS == 192) \
        WGMMA_SWAPPED("m64n192k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2, \
                      "%96", "%97", "%98", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64)); \
    if constexpr (ROWS == 224) \
        WGMMA_SWAPPED("m64n224k16", type, \
                      WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D16_6, \
                      "%112", "%113", "%114", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_16(d, 96)); \
    if constexpr (ROWS == 256) \
        WGMMA_SWAPPED("m64n256k16", type, \
                      WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D32_3, \
                      "%128", "%129", "%130", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_32(d, 96));
    if constexpr (is_half<T>) {
        WGMMA_SWAPPED_ANY("f16")
    } else {
        WGMMA_SWAPPED_ANY("bf16")
    }
#undef WGMMA_SWAPPED_ANY
}
