// Mistake: a thread clears shared memory by st.bulk while other warps still read it.
// Cure: __syncthreads() before it.
// Launch: sm_100a grid 1 block 128 args int32[128]:arange int32[128]
// Says: race
#include "asm.cuh"

__global__ void bulk_clear_over_a_read(const int* x, int* y)
{
    __shared__ alignas(16) int s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    const int value = s[127 - threadIdx.x];
#ifdef CURED
    __syncthreads();
#endif
    if (threadIdx.x == 0)
        asm volatile("st.bulk.weak.shared::cta [%0], 512, 0;" ::"r"(shared_address(s)) : "memory");
    __syncthreads();
    y[threadIdx.x] = value + s[threadIdx.x];
}
