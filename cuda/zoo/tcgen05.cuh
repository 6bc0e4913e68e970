// tcgen05 and tensor memory (sm_100a), as the kernels of the zoo use them: M = 64, N = 8, K = 16.
#pragma once
#include "asm.cuh"

constexpr unsigned ROWS = 16;  // of each warp's 32 lanes, those that hold a row where M = 64

// -- tensor memory, by a whole warp; its address goes to shared memory
template <int COLUMNS>
__device__ inline void tensor_alloc(unsigned* to)
{
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
                 ::"r"(shared_address(to)), "n"(COLUMNS) : "memory");
}
template <int COLUMNS>
__device__ inline void tensor_free(unsigned address)
{
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
                 ::"r"(address), "n"(COLUMNS) : "memory");
}
// The lanes of this warp: 32 of each of the four warps of a warpgroup.
__device__ inline unsigned own_lanes(unsigned address)
{
    return address + (threadIdx.x / 32 % 4 * 32 << 16);
}

// -- by one thread: D = A · B from descriptors, a copy of 32 bytes into all lanes, and who waits
__device__ inline unsigned long long tensor_descriptor(const void* p)
{
    return descriptor(p, 128, 256) | 1ull << 46;
}
constexpr unsigned MMA_F16 = 1u << 4 | 8u / 8 << 17 | 64u / 16 << 24;  // floats from halves
__device__ inline void tensor_mma(unsigned d, const void* a, const void* b)
{
    asm volatile("{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}\n"
                 ::"r"(d), "l"(tensor_descriptor(a)), "l"(tensor_descriptor(b)), "r"(MMA_F16)
                 : "memory");
}
// The same with A in tensor memory.
__device__ inline void tensor_mma(unsigned d, unsigned a, const void* b)
{
    asm volatile("{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, adds;\n}\n"
                 ::"r"(d), "r"(a), "l"(tensor_descriptor(b)), "r"(MMA_F16) : "memory");
}
__device__ inline void tensor_copy(unsigned to, const void* from)
{
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;"
                 ::"r"(to), "l"(tensor_descriptor(from)) : "memory");
}
__device__ inline void tensor_commit(Barrier* b)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"(shared_address(b)) : "memory");
}

// -- by a whole warp: four columns of its lanes
__device__ inline void tensor_load(float (&d)[4], unsigned address)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(address) : "memory");
}
__device__ inline void tensor_store(unsigned address, float value)
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %1, %1, %1};"
                 ::"r"(address), "f"(value) : "memory");
}
__device__ inline void tensor_wait_load()
{
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
__device__ inline void tensor_wait_store()
{
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
__device__ inline void fence_before()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ inline void fence_after()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// What each of these kernels begins with: an mbarrier, columns, A and B in shared memory.
template <int COLUMNS = 32>
__device__ inline unsigned tensor_begin(unsigned* address, Barrier* done, __half* a, __half* b)
{
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) a[i] = 1;
    for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) b[i] = 1;
    if (threadIdx.x == 0) {
        init(done, 1);
        fence_init();
    }
    if (threadIdx.x < 32) tensor_alloc<COLUMNS>(address);
    fence_async();
    __syncthreads();
    fence_after();
    return *address;
}
