// wgmma with the tiles' roles swapped: 64 columns of B times a tile of A's rows (sm_90a).
//
// wgmma's first operand has 64 rows, its second any multiple of 8 columns. Where C has few rows, or
// a number that 64 divides badly, B's columns are the first and A's rows the second, and C's tile
// comes out transposed. A, row by row, is K-major as a second operand too; the rows of a B that is
// row-major run along the first operand's 64, and the tensor cores transpose them. PTX ISA 9.7.15.
#pragma once

#include "wgmma.cuh"

#define WGMMA_D4_0 "%0, %1, %2, %3"
#define WGMMA_D8_0 WGMMA_D4_0 ", %4, %5, %6, %7"
#define WGMMA_D12_0 WGMMA_D8_0 ", %8, %9, %10, %11"
#define WGMMA_D16_0 WGMMA_D12_0 ", %12, %13, %14, %15"
#define WGMMA_D20_0 WGMMA_D16_0 ", %16, %17, %18, %19"
#define WGMMA_D24_0 WGMMA_D20_0 ", %20, %21, %22, %23"
#define WGMMA_D28_0 WGMMA_D24_0 ", %24, %25, %26, %27"
#define WGMMA_D4_1 "%32, %33, %34, %35"
#define WGMMA_D8_1 WGMMA_D4_1 ", %36, %37, %38, %39"
#define WGMMA_D12_1 WGMMA_D8_1 ", %40, %41, %42, %43"
#define WGMMA_D16_1 WGMMA_D12_1 ", %44, %45, %46, %47"
#define WGMMA_D20_1 WGMMA_D16_1 ", %48, %49, %50, %51"
#define WGMMA_D24_1 WGMMA_D20_1 ", %52, %53, %54, %55"
#define WGMMA_D28_1 WGMMA_D24_1 ", %56, %57, %58, %59"
#define WGMMA_D4_2 "%64, %65, %66, %67"
#define WGMMA_D8_2 WGMMA_D4_2 ", %68, %69, %70, %71"
#define WGMMA_D12_2 WGMMA_D8_2 ", %72, %73, %74, %75"
#define WGMMA_D16_2 WGMMA_D12_2 ", %76, %77, %78, %79"
#define WGMMA_D20_2 WGMMA_D16_2 ", %80, %81, %82, %83"
#define WGMMA_D24_2 WGMMA_D20_2 ", %84, %85, %86, %87"
#define WGMMA_D28_2 WGMMA_D24_2 ", %88, %89, %90, %91"
#define WGMMA_D4_3 "%96, %97, %98, %99"
#define WGMMA_D8_3 WGMMA_D4_3 ", %100, %101, %102, %103"
#define WGMMA_D12_3 WGMMA_D8_3 ", %104, %105, %106, %107"
#define WGMMA_D16_3 WGMMA_D12_3 ", %108, %109, %110, %111"
#define WGMMA_D20_3 WGMMA_D16_3 ", %112, %113, %114, %115"
#define WGMMA_D24_3 WGMMA_D20_3 ", %116, %117, %118, %119"
#define WGMMA_D28_3 WGMMA_D24_3 ", %120, %121, %122, %123"
#define WGMMA_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_12(d, i) WGMMA_8(d, i), WGMMA_4(d, i + 8)
#define WGMMA_16(d, i) WGMMA_8(d, i), WGMMA_8(d, i + 8)
#define WGMMA_20(d, i) WGMMA_16(d, i), WGMMA_4(d, i + 16)
#define WGMMA_24(d, i) WGMMA_16(d, i), WGMMA_8(d, i + 16)
#define WGMMA_28(d, i) WGMMA_24(d, i), WGMMA_4(d, i + 24)

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
    static_assert(ROWS % 8 == 0 && ROWS <= 256);
#define WGMMA_SWAPPED_ANY(type) \
    if constexpr (ROWS == 8) \
        WGMMA_SWAPPED("m64n8k16", type, WGMMA_D4_0, "%4", "%5", "%6", \
                      WGMMA_4(d, 0)); \
    if constexpr (ROWS == 16) \
        WGMMA_SWAPPED("m64n16k16", type, WGMMA_D8_0, "%8", "%9", "%10", \
                      WGMMA_8(d, 0)); \
    if constexpr (ROWS == 24) \
        WGMMA_SWAPPED("m64n24k16", type, WGMMA_D12_0, "%12", "%13", "%14", \
                      WGMMA_12(d, 0)); \
    if constexpr (ROWS == 32) \
        WGMMA_SWAPPED("m64n32k16", type, WGMMA_D16_0, "%16", "%17", "%18", \
                      WGMMA_16(d, 0)); \
    if constexpr (ROWS == 40) \
        WGMMA_SWAPPED("m64n40k16", type, WGMMA_D20_0, "%20", "%21", "%22", \
                      WGMMA_20(d, 0)); \
    if constexpr (ROWS == 48) \
        WGMMA_SWAPPED("m64n48k16", type, WGMMA_D24_0, "%24", "%25", "%26", \
                      WGMMA_24(d, 0)); \
    if constexpr (ROWS == 56) \
        WGMMA_SWAPPED("m64n56k16", type, WGMMA_D28_0, "%28", "%29", "%30", \
                      WGMMA_28(d, 0)); \
    if constexpr (ROWS == 64) \
        WGMMA_SWAPPED("m64n64k16", type, WGMMA_D32_0, "%32", "%33", "%34", \
                      WGMMA_32(d, 0)); \
    if constexpr (ROWS == 72) \
        WGMMA_SWAPPED("m64n72k16", type, WGMMA_D32_0 ", " WGMMA_D4_1, "%36", "%37", "%38", \
                      WGMMA_32(d, 0), WGMMA_4(d, 32)); \
    if constexpr (ROWS == 80) \
        WGMMA_SWAPPED("m64n80k16", type, WGMMA_D32_0 ", " WGMMA_D8_1, "%40", "%41", "%42", \
                      WGMMA_32(d, 0), WGMMA_8(d, 32)); \
    if constexpr (ROWS == 88) \
        WGMMA_SWAPPED("m64n88k16", type, WGMMA_D32_0 ", " WGMMA_D12_1, "%44", "%45", "%46", \
                      WGMMA_32(d, 0), WGMMA_12(d, 32)); \
    if constexpr (ROWS == 96) \
        WGMMA_SWAPPED("m64n96k16", type, WGMMA_D32_0 ", " WGMMA_D16_1, "%48", "%49", "%50", \
                      WGMMA_32(d, 0), WGMMA_16(d, 32)); \
    if constexpr (ROWS == 104) \
        WGMMA_SWAPPED("m64n104k16", type, WGMMA_D32_0 ", " WGMMA_D20_1, "%52", "%53", "%54", \
                      WGMMA_32(d, 0), WGMMA_20(d, 32)); \
    if constexpr (ROWS == 112) \
        WGMMA_SWAPPED("m64n112k16", type, WGMMA_D32_0 ", " WGMMA_D24_1, "%56", "%57", "%58", \
                      WGMMA_32(d, 0), WGMMA_24(d, 32)); \
    if constexpr (ROWS == 120) \
        WGMMA_SWAPPED("m64n120k16", type, WGMMA_D32_0 ", " WGMMA_D28_1, "%60", "%61", "%62", \
                      WGMMA_32(d, 0), WGMMA_28(d, 32)); \
    if constexpr (ROWS == 128) \
        WGMMA_SWAPPED("m64n128k16", type, WGMMA_D32_0 ", " WGMMA_D32_1, "%64", "%65", "%66", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32)); \
    if constexpr (ROWS == 136) \
        WGMMA_SWAPPED("m64n136k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D4_2, "%68", "%69", "%70", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_4(d, 64)); \
    if constexpr (ROWS == 144) \
        WGMMA_SWAPPED("m64n144k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D8_2, "%72", "%73", "%74", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_8(d, 64)); \
    if constexpr (ROWS == 152) \
        WGMMA_SWAPPED("m64n152k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D12_2, "%76", "%77", "%78", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_12(d, 64)); \
    if constexpr (ROWS == 160) \
        WGMMA_SWAPPED("m64n160k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D16_2, "%80", "%81", "%82", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_16(d, 64)); \
    if constexpr (ROWS == 168) \
        WGMMA_SWAPPED("m64n168k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D20_2, "%84", "%85", "%86", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_20(d, 64)); \
    if constexpr (ROWS == 176) \
        WGMMA_SWAPPED("m64n176k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D24_2, "%88", "%89", "%90", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_24(d, 64)); \
    if constexpr (ROWS == 184) \
        WGMMA_SWAPPED("m64n184k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D28_2, "%92", "%93", "%94", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_28(d, 64)); \
    if constexpr (ROWS == 192) \
        WGMMA_SWAPPED("m64n192k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2, "%96", "%97", "%98", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64)); \
    if constexpr (ROWS == 200) \
        WGMMA_SWAPPED("m64n200k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D4_3, "%100", "%101", "%102", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_4(d, 96)); \
    if constexpr (ROWS == 208) \
        WGMMA_SWAPPED("m64n208k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D8_3, "%104", "%105", "%106", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_8(d, 96)); \
    if constexpr (ROWS == 216) \
        WGMMA_SWAPPED("m64n216k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D12_3, "%108", "%109", "%110", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_12(d, 96)); \
    if constexpr (ROWS == 224) \
        WGMMA_SWAPPED("m64n224k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D16_3, "%112", "%113", "%114", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_16(d, 96)); \
    if constexpr (ROWS == 232) \
        WGMMA_SWAPPED("m64n232k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D20_3, "%116", "%117", "%118", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_20(d, 96)); \
    if constexpr (ROWS == 240) \
        WGMMA_SWAPPED("m64n240k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D24_3, "%120", "%121", "%122", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_24(d, 96)); \
    if constexpr (ROWS == 248) \
        WGMMA_SWAPPED("m64n248k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D28_3, "%124", "%125", "%126", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_28(d, 96)); \
    if constexpr (ROWS == 256) \
        WGMMA_SWAPPED("m64n256k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D32_3, "%128", "%129", "%130", \
                      WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_32(d, 96));
    if constexpr (is_half<T>) {
        WGMMA_SWAPPED_ANY("f16")
    } else {
        WGMMA_SWAPPED_ANY("bf16")
    }
#undef WGMMA_SWAPPED_ANY
}
