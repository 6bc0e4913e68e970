// tcgen05: one thread multiplies tiles of shared memory, and the sums lie in tensor memory
// (sm_100a).
//
// Tensor memory has 128 lanes and 512 columns of 32 bits. An address has the lane in its upper half
// and the column in its lower one. Warp w of four reaches the lanes from 32 (w % 4) on, no others.
// All of these run by themselves after they are issued; PTX ISA 9.7.16.6 has what orders them.
#pragma once

#include "types.cuh"

// A whole warp allocates columns, a power of two from 32 on; their address goes to shared memory.
template <int COLUMNS>
__device__ inline void tensor_alloc(unsigned to)
{
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;\n"
                 "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
                 ::"r"(to), "n"(COLUMNS) : "memory");
}

// And frees them, before the block ends.
template <int COLUMNS>
__device__ inline void tensor_free(unsigned address)
{
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
                 ::"r"(address), "n"(COLUMNS) : "memory");
}

// A warp loads 32 columns of its 32 lanes: each thread a row of them.
__device__ inline void tensor_load(float* to, unsigned address)
{
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11,"
        " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29,"
        " %30, %31}, [%32];"
        : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]), "=f"(to[4]), "=f"(to[5]),
          "=f"(to[6]), "=f"(to[7]), "=f"(to[8]), "=f"(to[9]), "=f"(to[10]), "=f"(to[11]),
          "=f"(to[12]), "=f"(to[13]), "=f"(to[14]), "=f"(to[15]), "=f"(to[16]), "=f"(to[17]),
          "=f"(to[18]), "=f"(to[19]), "=f"(to[20]), "=f"(to[21]), "=f"(to[22]), "=f"(to[23]),
          "=f"(to[24]), "=f"(to[25]), "=f"(to[26]), "=f"(to[27]), "=f"(to[28]), "=f"(to[29]),
          "=f"(to[30]), "=f"(to[31])
        : "r"(address) : "memory");
}

// Hold the warp until what it loads has come.
__device__ inline void tensor_wait()
{
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// What was issued before is ordered before the barriers that follow.
__device__ inline void fence_before_sync()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// What is issued now is ordered behind the barriers before.
__device__ inline void fence_after_sync()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Where an operand lies and how: its address, the distance of two atoms along its rows' direction
// (`leading`, of no meaning where rows are 128 bytes) and across it (`stride`), version 1, and the
// swizzle of 128 bytes, which is 2 in three bits where wgmma's descriptor has 1 in two.
constexpr int ATOM_BYTES = 1024;

__device__ inline unsigned long long tensor_descriptor(unsigned address, int leading, int stride)
{
    constexpr unsigned long long VERSION = 1, SWIZZLE_128 = 2;
    return (address & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | VERSION << 46 | SWIZZLE_128 << 61;
}

// 16 of K, from `k` on: of A at `a`, whose rows have 64 elements.
__device__ inline unsigned long long of_a(unsigned a, int k)
{
    return tensor_descriptor(a + k * 2, 16, ATOM_BYTES);
}

// And of B's tile at `b`, by rows in slabs of 64 columns, or by columns of 64 elements.
template <bool B_BY_ROWS>
__device__ inline unsigned long long of_b(unsigned b, int k)
{
    return B_BY_ROWS ? tensor_descriptor(b + k * 128, 64 * 128, ATOM_BYTES)
                     : tensor_descriptor(b + k * 2, 16, ATOM_BYTES);
}

// What is multiplied: sums in FP32 [4, 6), the types of A [7, 10) and B [10, 13), whether B's rows
// run along N (16), N / 8 [17, 23) and M / 16 [24, 29).
template <int N, class T, bool B_BY_ROWS, int M = 128>
constexpr unsigned INSTRUCTION = 1u << 4 | unsigned(!is_half<T>) << 7 | unsigned(!is_half<T>) << 10 |
                                 unsigned(B_BY_ROWS) << 16 | unsigned(N / 8) << 17 |
                                 unsigned(M / 16) << 24;

// D (128×N, float, in tensor memory) = A (128×16) · B (16×N), or D += that. One thread issues it.
template <int N, class T, bool B_BY_ROWS>
__device__ inline void tensor_multiply(unsigned d, unsigned long long a, unsigned long long b,
                                       bool adds)
{
    static_assert(N % 16 == 0 && 16 <= N && N <= 256);
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.u32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n"
                 "}\n" ::"r"(d), "l"(a), "l"(b), "r"(INSTRUCTION<N, T, B_BY_ROWS>),
                 "r"(unsigned(adds)) : "memory");
}

// The mbarrier has one arrival more when all that this thread has issued is done.
__device__ inline void tensor_commit(unsigned barrier)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"(barrier) : "memory");
}
