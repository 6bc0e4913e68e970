// tcgen05 for a pair of blocks (sm_100a), as the kernels of the zoo use it: M = 256, N = 16, K = 16.
#pragma once
#include "asm.cuh"

// -- tensor memory of both blocks, by a warp of each; its address goes to shared memory
__device__ inline void pair_alloc(unsigned* to)
{
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;"
                 ::"r"(shared_address(to)) : "memory");
}
__device__ inline void pair_free(unsigned address)
{
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" ::"r"(address) : "memory");
}

// -- by one thread of the pair: D = A · B, half of A's rows and of B's columns in either block
__device__ inline unsigned long long pair_descriptor(const void* p)
{
    return descriptor(p, 128, 256) | 1ull << 46;
}
constexpr unsigned PAIR_F16 = 1u << 4 | 16u / 8 << 17 | 256u / 16 << 24;  // floats from halves
__device__ inline void pair_mma(unsigned d, const void* a, const void* b)
{
    asm volatile("{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, adds;\n}\n"
                 ::"r"(d), "l"(pair_descriptor(a)), "l"(pair_descriptor(b)), "r"(PAIR_F16)
                 : "memory");
}
// The mbarrier of each block that the mask names.
__device__ inline void pair_commit(Barrier* b, unsigned short mask)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                 ".multicast::cluster.b64 [%0], %1;" ::"r"(shared_address(b)), "h"(mask) : "memory");
}

// -- by a whole warp: four columns of its lanes
__device__ inline void pair_load(float (&d)[4], unsigned address)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n"
                 "tcgen05.wait::ld.sync.aligned;"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(address + (threadIdx.x / 32 % 4 * 32 << 16)) : "memory");
}
__device__ inline void fence_after()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
