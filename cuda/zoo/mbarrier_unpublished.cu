// Mistake: one thread makes an mbarrier and the others use it, with nothing between.
// Cure: __syncthreads() after mbarrier.init.
// Launch: sm_90a grid 1 block 64 args int32[64]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void mbarrier_unpublished(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[64];
    if (threadIdx.x == 0) init(&barrier, 64);
#ifdef CURED
    __syncthreads();
#endif
    s[threadIdx.x] = x[threadIdx.x];
    arrive(&barrier);
    wait_for(&barrier, 0);
    y[threadIdx.x] = s[63 - threadIdx.x];
}
