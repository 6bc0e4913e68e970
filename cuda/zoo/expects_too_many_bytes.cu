// Mistake: an mbarrier expects more bytes than the copies bring, so that nobody ever gets on.
// Cure: expect what the copies bring.
// Launch: sm_90a grid 1 block 32 args int32[128]:arange int32[32]
// Says: Deadlock
#include "asm.cuh"

__global__ void expects_too_many_bytes(const int* x, int* y)
{
    __shared__ Barrier barrier;
    __shared__ alignas(16) int s[32];
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CURED
        arrive_expecting(&barrier, 128);
#else
        arrive_expecting(&barrier, 256);
#endif
        bulk_load(s, x, 128, &barrier);
    }
    wait_for(&barrier, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
