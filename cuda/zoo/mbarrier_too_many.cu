// Mistake: an mbarrier is made for 64 arrivals, and one thread per warp arrives.
// Cure: the number of the arrivals that come.
// Launch: sm_90a grid 1 block 64 args int32[64]:arange int32[64]
// Says: Deadlock
#include "asm.cuh"

__global__ void mbarrier_too_many(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[64];
#ifdef CURED
    if (threadIdx.x == 0) init(&barrier, 2);
#else
    if (threadIdx.x == 0) init(&barrier, 64);
#endif
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&barrier);
    wait_for(&barrier, 0);
    y[threadIdx.x] = s[63 - threadIdx.x];
}
