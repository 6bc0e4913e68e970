// Mistake: an mbarrier is made for one arrival of a warp, and all of its lanes arrive.
// Cure: one lane arrives, behind __syncwarp().
// Seen: https://github.com/deepseek-ai/DeepEP/pull/293
// Seen: https://github.com/triton-lang/triton/pull/9498
// Launch: sm_90a grid 1 block 64 args int32[32]:arange int32[32]
// Says: hazard or error
#include "asm.cuh"

__global__ void arrival_by_every_lane(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = x[threadIdx.x];
#ifdef CURED
        __syncwarp();
        if (threadIdx.x == 0) arrive(&barrier);
#else
        arrive(&barrier);
#endif
    } else {
        wait_for(&barrier, 0);
        y[threadIdx.x - 32] = s[63 - threadIdx.x];
    }
}
