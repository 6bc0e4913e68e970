// wgmma with operands swapped, for the tiles of rows that wgmma_swapped.cuh leaves out (sm_90a).
//
// For a number of rows that lies between those: 100 are a tile of 104, 300 two of 152. Of the same
// name, so that a kernel which includes this header first has both. PTX ISA 9.7.15.
#pragma once

#include "wgmma_swapped.cuh"

// Accumulators: from which on, and how many.
#define WGMMA_ROWS_32_4 "%32, %33, %34, %35"
#define WGMMA_ROWS_32_8 WGMMA_ROWS_32_4 ", %36, %37, %38, %39"
#define WGMMA_ROWS_32_12 WGMMA_ROWS_32_8 ", %40, %41, %42, %43"
#define WGMMA_ROWS_32_16 WGMMA_ROWS_32_12 ", %44, %45, %46, %47"
#define WGMMA_ROWS_32_20 WGMMA_ROWS_32_16 ", %48, %49, %50, %51"
#define WGMMA_ROWS_32_24 WGMMA_ROWS_32_20 ", %52, %53, %54, %55"
#define WGMMA_ROWS_32_28 WGMMA_ROWS_32_24 ", %56, %57, %58, %59"
#define WGMMA_ROWS_64_4 "%64, %65, %66, %67"
#define WGMMA_ROWS_64_8 WGMMA_ROWS_64_4 ", %68, %69, %70, %71"
#define WGMMA_ROWS_64_12 WGMMA_ROWS_64_8 ", %72, %73, %74, %75"
#define WGMMA_ROWS_64_16 WGMMA_ROWS_64_12 ", %76, %77, %78, %79"
#define WGMMA_ROWS_64_20 WGMMA_ROWS_64_16 ", %80, %81, %82, %83"
#define WGMMA_ROWS_64_24 WGMMA_ROWS_64_20 ", %84, %85, %86, %87"
#define WGMMA_ROWS_64_28 WGMMA_ROWS_64_24 ", %88, %89, %90, %91"
#define WGMMA_ROWS_96_4 "%96, %97, %98, %99"
#define WGMMA_ROWS_96_8 WGMMA_ROWS_96_4 ", %100, %101, %102, %103"
#define WGMMA_12(d, i) WGMMA_8(d, i), WGMMA_4(d, i + 8)
#define WGMMA_20(d, i) WGMMA_16(d, i), WGMMA_4(d, i + 16)
#define WGMMA_24(d, i) WGMMA_16(d, i), WGMMA_8(d, i + 16)
#define WGMMA_28(d, i) WGMMA_24(d, i), WGMMA_4(d, i + 24)

// For either type of A and B, and either layout of B.
#define WGMMA_ROWS_OF(ROWS, T, type, B_BY_ROWS, list, first, second, transposed, ...) \
    template <> \
    __device__ inline void wgmma_swapped<ROWS, T, B_BY_ROWS>( \
        float (&d)[ROWS / 2], unsigned long long b, unsigned long long a) \
    { \
        constexpr int TRANSPOSED = B_BY_ROWS; \
        WGMMA_SWAPPED("m64n" #ROWS "k16", type, list, first, second, transposed, __VA_ARGS__); \
    }
#define WGMMA_ROWS(ROWS, ...) \
    WGMMA_ROWS_OF(ROWS, half, "f16", false, __VA_ARGS__) \
    WGMMA_ROWS_OF(ROWS, half, "f16", true, __VA_ARGS__) \
    WGMMA_ROWS_OF(ROWS, __nv_bfloat16, "bf16", false, __VA_ARGS__) \
    WGMMA_ROWS_OF(ROWS, __nv_bfloat16, "bf16", true, __VA_ARGS__)

WGMMA_ROWS(72, WGMMA_D32_0 ", " WGMMA_ROWS_32_4, "%36", "%37", "%38",
           WGMMA_32(d, 0), WGMMA_4(d, 32))
WGMMA_ROWS(88, WGMMA_D32_0 ", " WGMMA_ROWS_32_12, "%44", "%45", "%46",
           WGMMA_32(d, 0), WGMMA_12(d, 32))
WGMMA_ROWS(104, WGMMA_D32_0 ", " WGMMA_ROWS_32_20, "%52", "%53", "%54",
           WGMMA_32(d, 0), WGMMA_20(d, 32))
WGMMA_ROWS(112, WGMMA_D32_0 ", " WGMMA_ROWS_32_24, "%56", "%57", "%58",
           WGMMA_32(d, 0), WGMMA_24(d, 32))
WGMMA_ROWS(120, WGMMA_D32_0 ", " WGMMA_ROWS_32_28, "%60", "%61", "%62",
           WGMMA_32(d, 0), WGMMA_28(d, 32))
WGMMA_ROWS(136, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_ROWS_64_4, "%68", "%69", "%70",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_4(d, 64))
WGMMA_ROWS(144, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_ROWS_64_8, "%72", "%73", "%74",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_8(d, 64))
WGMMA_ROWS(152, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_ROWS_64_12, "%76", "%77", "%78",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_12(d, 64))
WGMMA_ROWS(168, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_ROWS_64_20, "%84", "%85", "%86",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_20(d, 64))
WGMMA_ROWS(184, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_ROWS_64_28, "%92", "%93", "%94",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_28(d, 64))
WGMMA_ROWS(200, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_ROWS_96_4,
           "%100", "%101", "%102",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_4(d, 96))
WGMMA_ROWS(208, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_ROWS_96_8,
           "%104", "%105", "%106",
           WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_8(d, 96))
