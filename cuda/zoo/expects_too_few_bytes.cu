// Mistake: two bulk copies complete on an mbarrier that expects the bytes of one.
// Cure: expect the bytes of both.
// Launch: sm_90a grid 1 block 32 args int32[128]:arange int32[32]
// Says: hazard or error
#include "asm.cuh"

__global__ void expects_too_few_bytes(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[64];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CURED
        arrive_expecting(&barrier, 256);
#else
        arrive_expecting(&barrier, 128);
#endif
        bulk_load(s, x, 128, &barrier);
        bulk_load(s + 32, x + 32, 128, &barrier);
    }
    wait_for(&barrier, 0);
    y[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 32];
}
