// Mistake: an mbarrier is made for half of the threads that arrive: its phase is over too early.
// Cure: the number of the threads that arrive.
// Seen: https://github.com/deepseek-ai/DeepEP/pull/293
// Launch: sm_90a grid 1 block 64 args int32[64]:arange int32[64]
// Says: race
#include "asm.cuh"

__global__ void mbarrier_too_few(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[64];
#ifdef CURED
    if (threadIdx.x == 0) init(&barrier, 64);
#else
    if (threadIdx.x == 0) init(&barrier, 32);
#endif
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x];
    arrive(&barrier);
    if (threadIdx.x < 32) {
        wait_for(&barrier, 0);
        y[threadIdx.x] = s[63 - threadIdx.x];
    }
}
