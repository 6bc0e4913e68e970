// wgmma: a warpgroup (four warps) multiplies tiles that lie in shared memory (sm_90a).
//
// D (64×N, float, in registers) += A (64×16) · B (16×N), both of 16-bit floats and both swizzled by
// 128 bytes, as tensor maps bring them: chunk c of 16 bytes of the row r of 128 bytes lies at chunk
// c ^ (r % 8). Eight rows make an atom of 1024 bytes, on which the tiles are aligned.
//
// The product runs by itself after it is issued. wgmma_fence() before the first one orders the
// registers of D; wgmma_commit() closes a group; wgmma_wait<n>() waits for all but the last n.
// PTX ISA 9.7.15.
#pragma once

#include "types.cuh"

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ inline void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Where an operand lies and how: its address, the distance of two atoms along its rows' direction
// (`leading`, of no meaning where rows are 128 bytes) and across it (`stride`), and the swizzle.
constexpr int ATOM_BYTES = 1024;

__device__ inline unsigned long long wgmma_descriptor(unsigned address, int leading, int stride)
{
    constexpr unsigned long long SWIZZLE_128 = 1;
    return (address & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | SWIZZLE_128 << 62;
}

// An operand whose rows run along K, 64 elements each: A row by row, or B column by column. The
// next 16 of K are 32 bytes further.
__device__ inline unsigned long long k_major(unsigned address)
{
    return wgmma_descriptor(address, 16, ATOM_BYTES);
}

// B row by row: its rows run along N and are cut into slabs of 64 columns, each of `rows` rows. The
// next 16 of K are 16 rows, two atoms, further.
__device__ inline unsigned long long n_major(unsigned address, int rows)
{
    return wgmma_descriptor(address, rows * 128, ATOM_BYTES);
}

#define WGMMA_D32_0 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_D32_1 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_D32_2 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_D32_3 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
    "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
    "%126, %127"
#define WGMMA_8(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define WGMMA_32(d, i) WGMMA_8(d, i), WGMMA_8(d, i + 8), WGMMA_8(d, i + 16), WGMMA_8(d, i + 24)

// The operands behind the accumulators: both descriptors, whether to add to D (always), the signs
// of A and B (both +), whether A is transposed (never) and B (if its rows run along N).
#define WGMMA(shape, type, list, a, b, trans, ...) \
    asm volatile("{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n" \
                 "wgmma.mma_async.sync.aligned." shape ".f32." type "." type \
                 " {" list "}, " a ", " b ", add, 1, 1, 0, " trans ";\n}\n" __VA_ARGS__)

// D += A · B for a tile of N columns; T is half or __nv_bfloat16.
template <int N, class T, bool B_BY_ROWS>
__device__ inline void wgmma(float (&d)[N / 2], unsigned long long a, unsigned long long b)
{
    static_assert(N == 64 || N == 128 || N == 192 || N == 256);
    constexpr int TRANSPOSED = B_BY_ROWS;
#define WGMMA_64(type) \
    WGMMA("m64n64k16", type, WGMMA_D32_0, "%32", "%33", "%34", \
          : WGMMA_32(d, 0) : "l"(a), "l"(b), "n"(TRANSPOSED))
#define WGMMA_128(type) \
    WGMMA("m64n128k16", type, WGMMA_D32_0 ", " WGMMA_D32_1, "%64", "%65", "%66", \
          : WGMMA_32(d, 0), WGMMA_32(d, 32) : "l"(a), "l"(b), "n"(TRANSPOSED))
#define WGMMA_192(type) \
    WGMMA("m64n192k16", type, WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2, "%96", "%97", "%98", \
          : WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64) \
          : "l"(a), "l"(b), "n"(TRANSPOSED))
#define WGMMA_256(type) \
    WGMMA("m64n256k16", type, \
          WGMMA_D32_0 ", " WGMMA_D32_1 ", " WGMMA_D32_2 ", " WGMMA_D32_3, "%128", "%129", "%130", \
          : WGMMA_32(d, 0), WGMMA_32(d, 32), WGMMA_32(d, 64), WGMMA_32(d, 96) \
          : "l"(a), "l"(b), "n"(TRANSPOSED))
    if constexpr (is_half<T>) {
        if constexpr (N == 64) WGMMA_64("f16");
        if constexpr (N == 128) WGMMA_128("f16");
        if constexpr (N == 192) WGMMA_192("f16");
        if constexpr (N == 256) WGMMA_256("f16");
    } else {
        if constexpr (N == 64) WGMMA_64("bf16");
        if constexpr (N == 128) WGMMA_128("bf16");
        if constexpr (N == 192) WGMMA_192("bf16");
        if constexpr (N == 256) WGMMA_256("bf16");
    }
#undef WGMMA_64
#undef WGMMA_128
#undef WGMMA_192
#undef WGMMA_256
}
