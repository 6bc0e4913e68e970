// Block scales: elements of 8 or 4 bits, of which 32 or 16 along K share a scale (sm_100a).
//
// Scales lie in tensor memory while they are used. A row's four scales along K are a word there: of
// rows r, 32 + r, 64 + r and 96 + r in lane r of four columns, the same in each quarter of the
// lanes. In memory they lie as such an atom of 512 bytes: 128 rows, four scales each, row r at byte
// r % 32 * 16 + r / 32 * 4. PTX ISA 9.7.16.2.3.
#pragma once

#include "cta_pairs.cuh"

constexpr int SCALE_ATOM = 512, SCALE_ATOM_COLUMNS = 4;

// MXFP8: E4M3, a power of two (UE8M0) for each 32. One atom lasts four MMAs, a byte each.
struct Mxfp8 {
    static constexpr int ROW = 128, EACH = 32;       // elements in 128 bytes, and along K of an MMA
    static constexpr int ATOMS = 1;                  // for the K of a row, of 128 rows
    static constexpr unsigned DESCRIPTOR = 1u << 23;  // types E4M3 (0), scales UE8M0
    __device__ static constexpr int atom(int mma) { return 0; }
    __device__ static constexpr unsigned byte(int mma) { return mma; }
};

// NVFP4: E2M1, two in a byte, an E4M3 without sign (UE4M3) for each 16. An MMA takes four scales.
struct Nvfp4 {
    static constexpr int ROW = 256, EACH = 64;
    static constexpr int ATOMS = 4;
    static constexpr unsigned DESCRIPTOR = 1u << 7 | 1u << 10;  // types E2M1, scales UE4M3 (0)
    __device__ static constexpr int atom(int mma) { return mma; }
    __device__ static constexpr unsigned byte(int mma) { return 0; }
};

// Begin to copy an atom of either block's shared memory to its tensor memory. MMAs that are issued
// behind it read it; one before it may still read what it overwrites.
__device__ inline void pair_copy_scales(unsigned to, unsigned from)
{
    constexpr unsigned long long VERSION = 1, STRIDE = 128 >> 4;  // 8 rows of 16 bytes
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;"
                 ::"r"(to), "l"((from & 0x3FFFF) >> 4 | 1ull << 16 | STRIDE << 32 | VERSION << 46)
                 : "memory");
}

// D (256×N) = A (256×EACH) · B (EACH×N), or D += that, each element times its scale. `mma` is which
// one of a row, `a_scales` and `b_scales` where its atoms lie in both blocks' tensor memory.
template <int N, class Format>
__device__ inline void pair_multiply_scaled(unsigned d, unsigned long long a,
                                            unsigned long long b, unsigned a_scales,
                                            unsigned b_scales, int mma, bool adds)
{
    static_assert(N % 16 == 0 && 16 <= N && N <= 256);
    const unsigned id = Format::byte(mma);
    const unsigned what = Format::DESCRIPTOR | id << 4 | unsigned(N / 8) << 17 | 256u / 16 << 24 |
                          id << 29;
    if constexpr (Format::ATOMS == 1)
        asm volatile("{\n"
                     ".reg .pred adds;\n"
                     "setp.ne.u32 adds, %6, 0;\n"
                     "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X"
                     " [%0], %1, %2, %3, [%4], [%5], adds;\n"
                     "}\n" ::"r"(d), "l"(a), "l"(b), "r"(what), "r"(a_scales), "r"(b_scales),
                     "r"(unsigned(adds)) : "memory");
    else
        asm volatile("{\n"
                     ".reg .pred adds;\n"
                     "setp.ne.u32 adds, %6, 0;\n"
                     "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X"
                     " [%0], %1, %2, %3, [%4], [%5], adds;\n"
                     "}\n" ::"r"(d), "l"(a), "l"(b), "r"(what), "r"(a_scales), "r"(b_scales),
                     "r"(unsigned(adds)) : "memory");
}
